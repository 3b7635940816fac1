package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Errors of the database, for errors.Is.
var (
	ErrDown       = error(unavailable("the database cannot be reached: check that it is running, then try again"))
	ErrFull       = error(unwritten("the database's disk is full: nothing can be stored until space is freed"))
	ErrReadOnly   = error(unwritten("the database is read-only: nothing can be stored until it is writable"))
	ErrBusy       = error(unavailable("the database is busy: a lock or a statement took too long; try again"))
	ErrTimeout    = error(unavailable("the database did not respond in time; try again"))
	ErrOverloaded = error(unavailable("too many requests are waiting for the database; try again"))
	ErrNewer      = errors.New("the database was written by a newer version of deckhand: start that version, or restore a backup")
	ErrClosed     = errors.New("the database is closed")
)

// unwritten is an error whose text is sent to clients: the database cannot store anything.
type unwritten string

func (u unwritten) Error() string { return string(u) }

// Unwritable is the method by which the API recognises the error.
func (u unwritten) Unwritable() string { return string(u) }

// unavailable is an error whose text is sent to clients and that is probably temporary.
type unavailable string

func (u unavailable) Error() string { return string(u) }

// Unavailable is the method by which the API recognises the error.
func (u unavailable) Unavailable() string { return string(u) }

// refusal is a write's own decision not to write.
type refusal struct{ error }

// Refuse wraps the error of a write that decided not to write. It is not an error of the database.
func Refuse(err error) error { return refusal{err} }

func (r refusal) Unwrap() error { return r.error }

// State returns the SQLSTATE of a PostgreSQL error; empty for other errors.
func State(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Explain wraps an error of the database or the connection in one of the errors above.
func Explain(err error) error {
	explained := slices.ContainsFunc([]error{ErrDown, ErrFull, ErrReadOnly, ErrBusy, ErrTimeout}, func(known error) bool { return errors.Is(err, known) })
	if err == nil || explained || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s := State(err)
	switch {
	case s == "53100": // disk_full
		return fmt.Errorf("%w (%w)", ErrFull, err)
	case s == "25006": // read_only_sql_transaction
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case s == "55P03" || s == "57014" || s == "40P01" || s == "40001": // lock or statement timeout, deadlock
		return fmt.Errorf("%w (%w)", ErrBusy, err)
	case Unconnected(err), Lost(err):
		return fmt.Errorf("%w (%w)", ErrDown, brief{err})
	}
	return err
}

// brief is an error in one line. An error of connecting has a line for each attempt, and most say the same: one with TLS, one without.
type brief struct{ error }

func (b brief) Error() string {
	var lines []string
	for line := range strings.Lines(b.error.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

func (b brief) Unwrap() error { return b.error }

// Brief returns the text of an error in one line.
func Brief(err error) string { return brief{err}.Error() }

// away reports whether the SQLSTATE means that the server is stopping, starting or out of resources.
func away(state string) bool {
	return strings.HasPrefix(state, "57P") || strings.HasPrefix(state, "53") || strings.HasPrefix(state, "08")
}

// failure is an error of the database or the connection, not of the caller.
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

// Retryable reports whether a transaction conflicted with another one and can be retried.
func Retryable(err error) bool {
	switch State(err) {
	case "40001", "40P01", "23505": // serialization, deadlock, unique
		return true
	}
	return PlanLost(err)
}

// PlanLost reports that a prepared statement is no longer known or valid, so that the connection is to be replaced.
func PlanLost(err error) bool {
	state := State(err)
	return state == "26000" || state == "0A000"
}

// ofDatabase reports whether an error concerns the whole database and not a single write.
func ofDatabase(err error) bool {
	return errors.Is(err, ErrDown) || errors.Is(err, ErrTimeout) || errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrBusy)
}

// Refuses reports whether the database refuses all statements, and not only this one.
func Refuses(err error) bool {
	return ofDatabase(err) && !errors.Is(err, ErrBusy) || errors.Is(err, ErrOverloaded) || errors.Is(err, ErrClosed)
}

// Unconnected reports whether there was no connection, so that nothing was sent.
func Unconnected(err error) bool {
	var e *pgconn.ConnectError
	return errors.As(err, &e)
}
