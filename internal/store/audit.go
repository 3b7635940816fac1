package store

import (
	"context"
	"errors"
	"iter"

	"deckhand/internal/session"
)

// ErrNone means that a database on a server has not been used by Deckhand yet.
var ErrNone = errors.New("it contains no Deckhand data; check the name of the database")

// Audit reads and corrects what the parts of a database say of each other. It is for the doctor.
type Audit interface {
	// Sessions yields all sessions, also deleted ones, with their ID, owner, last event and whether they are deleted. It
	// reads no packed rows, which can be damaged.
	Sessions(ctx context.Context) iter.Seq2[session.Row, error]
	// Orphans lists the numbers of logs whose session is missing, and RemoveOrphan removes such a log. It passes the events
	// to save before, as lines of JSON.
	Orphans(ctx context.Context) ([]int64, error)
	RemoveOrphan(ctx context.Context, n int64, save func([]byte) error) error
	// Reservations are what sessions have reserved for model calls, and SetReservation corrects one; 0 removes it.
	Reservations(ctx context.Context) ([]Reservation, error)
	SetReservation(ctx context.Context, r Reservation) error
}

// Reservation is what a session has reserved for a model call.
type Reservation struct {
	User    string
	Session session.ID
	Amount  session.Money
}
