package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// What can go wrong with the database, for errors.Is. The texts are for the
// operator, who can do something about it.
var (
	ErrDown     = error(unavailable("the database cannot be reached; the operator can find the reason in the server log"))
	ErrFull     = error(unwritten("the database's disk is full: nothing can be stored until space is freed"))
	ErrReadOnly = error(unwritten("the database is read-only: nothing can be stored until it is writable"))
	ErrBusy     = error(unavailable("the database is busy: a lock or a statement took too long; try again"))
	ErrNewer    = errors.New("the database was written by a newer version of deckhand: start that version, or restore a backup")
	ErrClosed   = errors.New("the database is closed")
)

// unwritten is trouble that clients are told of in these words, for it is
// neither their fault nor a secret.
type unwritten string

func (u unwritten) Error() string { return string(u) }

// Unwritable is how the door recognises it.
func (u unwritten) Unwritable() string { return string(u) }

// unavailable is trouble that clients are told of in these words, and that is likely to pass.
type unavailable string

func (u unavailable) Error() string { return string(u) }

// Unavailable is how the door recognises it.
func (u unavailable) Unavailable() string { return string(u) }

// refusal is a write's own decision not to write.
type refusal struct{ error }

// Refuse wraps the error of a write that decided not to write. It is not an error of the database.
func Refuse(err error) error { return refusal{err} }

func (r refusal) Unwrap() error { return r.error }

// State is the five letters by which PostgreSQL names an error; empty for other errors.
func State(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// explain puts our name to what the database or the way to it reports.
func explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s := State(err)
	switch {
	case s == "53100" || s == "58030": // disk_full, io_error
		return fmt.Errorf("%w (%w)", ErrFull, err)
	case s == "25006": // read_only_sql_transaction
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case s == "55P03" || s == "57014" || s == "40P01" || s == "40001": // lock or statement timeout, deadlock
		return fmt.Errorf("%w (%w)", ErrBusy, err)
	case Unconnected(err), Lost(err):
		return fmt.Errorf("%w (%w)", ErrDown, err)
	}
	return err
}

// away says that the server ends, starts, or takes no more connections.
func away(state string) bool {
	return strings.HasPrefix(state, "57P") || strings.HasPrefix(state, "53") || strings.HasPrefix(state, "08")
}

// failure is an error of the database or of the way to it, not of who uses it.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

// Lost reports that the connection failed, so that the outcome of the statement is unknown.
func Lost(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return away(e.Code)
	}
	var f failure
	return errors.As(err, &f)
}

// Again says that a transaction may succeed the next time: it met another one.
func Again(err error) bool {
	switch State(err) {
	case "40001", "40P01", "23505": // serialization, deadlock, unique
		return true
	}
	return false
}

// ofDatabase tells trouble of the database from that of a single write.
func ofDatabase(err error) bool {
	return errors.Is(err, ErrDown) || errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrBusy)
}

// Unconnected says that there was no connection, so that nothing was sent.
func Unconnected(err error) bool {
	var e *pgconn.ConnectError
	return errors.As(err, &e)
}
