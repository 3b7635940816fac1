// Package store says what the program needs from a database. Each implementation is a
// package below, named after its database, and passes the suites that the packages of the
// parts have: logtest, accesstest, notifytest and so on.
package store

import (
	"context"

	"deckhand/internal/access"
	"deckhand/internal/feedback"
	"deckhand/internal/idempotency"
	"deckhand/internal/notify"
	"deckhand/internal/queue"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/trigger"
)

// Backend is an open database. Every method may be called concurrently.
type Backend interface {
	session.Log
	session.Index
	session.Ledger
	settings.Store
	access.Store
	idempotency.Store
	secret.KeyStore

	// AppendAll stores the batches of a new session in one transaction, or fails with
	// session.ErrConflict if the session exists.
	AppendAll(ctx context.Context, batches []session.Batch) error
	// NewID makes an id that the database finds quickly.
	NewID() session.ID
	// Dump returns the stored form of a session's events after a number, and Repair removes
	// these events and stores the row that the others make.
	Dump(ctx context.Context, id session.ID, after int64) ([]byte, error)
	Repair(ctx context.Context, id session.ID, after int64, row session.Row) error

	// UseChain sets the key of the hash chain over events, before the first append. Rows are then written with
	// marks, and marks are checked when a log is read from its beginning. Sessions up to the number start may
	// begin without marks; ChainStart is that number of this database.
	UseChain(key [32]byte, start int64)
	ChainStart(ctx context.Context) (int64, error)
	// RestartChain accepts the events of a session as they are and gives them marks.
	RestartChain(ctx context.Context, id session.ID) error

	Egress() egress.Ledger
	Feedback() feedback.Store
	// Webhooks and Triggers are the records on the durable queue.
	Webhooks() *notify.Records
	Triggers() *trigger.Records
	// Queue returns the durable queue with this name, for a package that stores nothing else.
	Queue(name string) queue.Store

	// Meta is a value of the whole installation, nil if there is none. SetMetaOnce stores one
	// unless there is one, and returns the one that is stored then.
	Meta(ctx context.Context, name string) ([]byte, error)
	SetMetaOnce(ctx context.Context, name string, value []byte) ([]byte, error)

	// Written is how many changes were stored, in how many transactions.
	Written() (changes, transactions int64)
	// ReadOnly is true when nothing can be written, such as on a disk that is mounted so.
	ReadOnly() bool
	// Ping asks the database something. Healthy says why the last write failed, nil if it did not.
	Ping(ctx context.Context) error
	Healthy() error
	// Version names the database, such as PostgreSQL 15.14.
	Version(ctx context.Context) (string, error)
	// Check looks for damage.
	Check(ctx context.Context) error
	Close() error
}

// Options are for opening a database.
type Options struct {
	// Reserve is how much disk space to keep for when the disk is full, so that stops,
	// deletions and failures can still be recorded; 0 for none. A database elsewhere ignores it.
	Reserve int64
	// Together lets several servers use the database at the same time. A database in a file ignores it.
	Together bool
	// Exclusive is for repairs: opening fails while a server uses the database, and no server can start on it until it is closed. For a
	// database in a file, the lock of the data directory does the same.
	Exclusive bool
	// Existing refuses a PostgreSQL database without data, with ErrNone, or with an old schema.
	Existing bool
	// Temporary says that the database is removed with the process: no disk space is kept for it.
	Temporary bool
	// Templates is the folder of an empty database, of which new temporary SQLite files are copies; "" for none.
	Templates string
}
