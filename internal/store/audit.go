package store

import (
	"context"
	"errors"
	"iter"

	"deckhand/internal/session"
)

// ErrNone means that Deckhand has not used a PostgreSQL database yet.
var ErrNone = errors.New("the database contains no Deckhand data; check its name in the database URL")

// Audit finds and corrects contradictions between the parts of a database. It is for the doctor.
type Audit interface {
	// Sessions yields all sessions, including deleted ones, with their ID, owner and last event, and whether they are deleted. It
	// reads no packed rows, because these can be damaged.
	Sessions(ctx context.Context) iter.Seq2[session.Row, error]
	// Orphans lists the numbers of logs whose session is missing, and RemoveOrphan removes such a log. Before that,
	// it passes the events to save as lines of JSON.
	Orphans(ctx context.Context) ([]int64, error)
	RemoveOrphan(ctx context.Context, n int64, save func([]byte) error) error
	// Reservations returns what sessions have reserved for model calls. SetReservation corrects a reservation; 0 removes it.
	Reservations(ctx context.Context) ([]Reservation, error)
	SetReservation(ctx context.Context, r Reservation) error
}

// Reservation is what a session has reserved for a model call.
type Reservation struct {
	User    string
	Session session.ID
	Amount  session.Money
}
