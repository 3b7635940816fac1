package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// What can go wrong with the file, for errors.Is. The texts are for the
// operator, who can do something about it.
var (
	errLow      = error(unwritten("the disk is nearly full: free some space, or writes will fail"))
	ErrFull     = error(unwritten("the disk is full: nothing can be stored until space is freed"))
	ErrReadOnly = error(unwritten("the database is read-only: nothing can be stored; make the disk writable and restart the server"))
	ErrBusy     = errors.New("the database is locked by another process")
	ErrNewer    = errors.New("the database was written by a newer version of deckhand: start that version, or restore a backup")
	ErrClosed   = errors.New("the database is closed")
)

// unwritten is trouble that clients are told of in these words, for it is
// neither their fault nor a secret.
type unwritten string

func (u unwritten) Error() string { return string(u) }

// Unwritable is how the door recognises it.
func (u unwritten) Unwritable() string { return string(u) }

// refusal is a write's own decision not to write. It has changed nothing, so
// the writes beside it go on.
type refusal struct{ error }

func refuse(err error) error { return refusal{err} }

func (r refusal) Unwrap() error { return r.error }

// explain puts our name to what SQLite reports.
func explain(err error) error {
	var e *sqlite.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Code()&0xff == lib.SQLITE_FULL, e.Code() == lib.SQLITE_IOERR_SHMSIZE:
		return fmt.Errorf("%w (%w)", ErrFull, err)
	case e.Code()&0xff == lib.SQLITE_READONLY:
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case e.Code()&0xff == lib.SQLITE_BUSY:
		return fmt.Errorf("%w (%w)", ErrBusy, err)
	case e.Code()&0xff == lib.SQLITE_NOTADB: // whatever the statement was
		return fmt.Errorf("it is not a database of Deckhand: %w", e)
	}
	return err
}

// busy reports whether another process held the lock, so that the write itself is not at fault.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == lib.SQLITE_BUSY
}

// ofDatabase tells an error of the file and its disk from one of a single write.
func ofDatabase(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_FULL, lib.SQLITE_READONLY, lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN,
		lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_NOMEM, lib.SQLITE_PERM, lib.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// ofSQLite reports whether an error comes from the database, not from its caller.
func ofSQLite(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e)
}

// failedIO says that the operating system refused something, without a better name for it.
func failedIO(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_IOERR || e.Code()&0xff == lib.SQLITE_CANTOPEN)
}

// unwritable says that a file or its folder can be read at best.
func unwritable(err error) bool {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return true
	}
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_READONLY || e.Code()&0xff == lib.SQLITE_CANTOPEN)
}
