package store

import (
	"context"
	"errors"
	"time"

	"deckhand/internal/session"
)

var (
	// ErrNone means that Deckhand has not used a PostgreSQL database yet.
	ErrNone = errors.New("the database contains no Deckhand data; check its name in the database URL")
	// ErrOutdated means that the server changes the tables of a PostgreSQL database at its next start.
	ErrOutdated = errors.New("the schema of the database is out of date")
)

// Audit reads and corrects the tables of a database, for the doctor.
type Audit interface {
	// Sessions returns the next sessions after a number, and the number of the last one; none at the end. They include deleted
	// sessions, and have their ID, owner and last event, and whether they are deleted. Sessions reads no packed rows, because
	// these can be damaged.
	Sessions(ctx context.Context, after int64) (rows []session.Row, last int64, err error)
	// Orphans returns the numbers of logs whose session is missing, OrphanEvents the rows of such a log, and RemoveOrphan
	// removes it.
	Orphans(ctx context.Context) ([]int64, error)
	OrphanEvents(ctx context.Context, n int64) ([]OrphanEvents, error)
	RemoveOrphan(ctx context.Context, n int64) error
	// Reservations returns what sessions have reserved for model calls. SetReservation corrects a reservation; 0 removes it.
	Reservations(ctx context.Context) ([]Reservation, error)
	SetReservation(ctx context.Context, r Reservation) error
}

// AuditPage is how many rows an Audit reads at a time: a statement has a time limit, and others can write between two.
const AuditPage = 1000

// OrphanEvents is a row with events of a log whose session is missing.
type OrphanEvents struct {
	At   time.Time `json:"at"`
	Body string    `json:"body"`
	Last int64     `json:"last"`
}

// Reservation is what a session has reserved for a model call.
type Reservation struct {
	User    string
	Session session.ID
	Amount  session.Money
}
