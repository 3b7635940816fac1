package session

import (
	"context"
	"errors"
	"iter"
	"time"
)

// What can go wrong, for errors.Is. Texts are for people.
var (
	ErrNotFound = errors.New("conversation not found")
	ErrConflict = errors.New("the session was changed at the same time")
	ErrCorrupt  = errors.New("the session's log is damaged")
	ErrNewer    = errors.New("the session was written by a newer version of deckhand") // the session is not damaged
	ErrNotOwner = errors.New("the session is held by another loop")
	ErrRefused  = errors.New("not possible in this state")
	ErrDeleted  = errors.New("the conversation was deleted")
	// ErrHeld says that a live member of the cluster holds the session: only that one may work on it.
	ErrHeld = errors.New("another process works on the session")
	// ErrDuplicate says a message with this key is recorded already: a second delivery, not a failure.
	ErrDuplicate = errors.New("this message was delivered before")
)

// Batch is what one Append stores, all or nothing.
type Batch struct {
	ID ID
	// After is the number the session must have now; 0 for a new one.
	After int64
	// Events are numbered After+1, After+2, …
	Events []Event
	// Row is the session's row in lists after the events. It is part of the batch so that a store updates log and lists in one transaction, without folding.
	Row Row
	// Charge is what the events do to the ledger of Row.Owner. It travels with them for the same reason.
	Charge Charge
	// News is what webhooks may deliver. It is part of the batch for the same reason; a store without webhooks ignores it.
	News []News
}

// Log keeps sessions. Implementations pass logtest.
type Log interface {
	// Append stores the batch in one durable transaction: when it returns nil, the events survive a crash of process and machine. If the session's
	// last number is not b.After, nothing is stored and the error is ErrConflict; if b.Charge is over its limit, nothing is stored and it is a
	// *BudgetError. After a Deleted event the store may drop all events before it. When ctx ends first, the batch may or may not have been stored.
	Append(ctx context.Context, b Batch) error
	// Read yields the stored events with numbers above after, in order, until the end of the log as it was at some moment after the call. A session
	// that does not exist yields nothing.
	Read(ctx context.Context, id ID, after int64) iter.Seq2[Event, error]
}

// Index answers questions about many sessions without folding any.
type Index interface {
	// Row returns what is known of one session, deleted ones included; ErrNotFound.
	Row(ctx context.Context, id ID) (Row, error)
	// Rows lists an owner's sessions, newest first, without deleted ones.
	Rows(ctx context.Context, q Query) ([]Row, error)
	// Wanting yields all sessions that need a loop and whose holder is not among held, the live members other than the one that asks,
	// oldest change first. The store is being read until the loop ends, so what is done with each must be short.
	Wanting(ctx context.Context, held []string) iter.Seq2[Waiting, error]
	// Idle lists sessions whose status is RUNNING, that want no loop, and that have not changed since before.
	Idle(ctx context.Context, before time.Time, limit int) ([]ID, error)
	// Unchanged yields sessions that are not deleted and had not changed since before when they were read.
	Unchanged(ctx context.Context, before time.Time) iter.Seq2[ID, error]
}

// Waiting is a session that needs a loop.
type Waiting struct {
	ID    ID
	Owner string
}

// Row is what lists know of a session.
type Row struct {
	ID         ID
	Owner      string
	Title      string
	Status     Status
	Agent      AgentState
	ErrorID    string
	Reason     string
	Trigger    string
	Repository string
	Branch     string
	Provider   string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Last       int64
	// Step is how far a workspace that is being made is.
	Step string
	// Wants is true when a loop should hold the session and work.
	Wants bool
	// Holder is the member that claimed the session last, "" when the session does not want a loop or was not claimed since it was started.
	Holder  string
	Deleted bool
	Totals  Totals
	// Requests are its newest pull requests, oldest first.
	Requests []RequestOpened
}

// Shown is the status that people see: a session that runs is starting again while its workspace is being made.
func (r Row) Shown() Status {
	if r.Status == Running && r.Step != "" {
		return Starting
	}
	return r.Status
}

// Query selects rows of one owner. Zero fields do not filter.
type Query struct {
	Owner      string
	Repository string
	Trigger    string
	// Status is the one shown.
	Status Status
	// Text is a case-insensitive part of the title, the repository or the ID, of which fewer than eight characters do not count.
	Text string
	// Before continues a list: rows strictly after this one in list order.
	Before *Cursor
	Limit  int
}

// Cursor is the place of a row in a list: newest first, ties by ID.
type Cursor struct {
	CreatedAt time.Time
	ID        ID
}

// Rememberer is a Log that keeps in memory what this process stored lately.
type Rememberer interface {
	// Remembered returns the events after a number up to the one that ends a batch. False if not all of them are there. The events are shared: do not change them.
	Remembered(id ID, after, last int64) ([]Event, bool)
}

// ReadUpTo reads what is known to be stored, and perhaps more: from memory if the log still has it there, which spares a look at the store.
func ReadUpTo(ctx context.Context, log Log, id ID, after, last int64) iter.Seq2[Event, error] {
	if last <= after {
		return func(func(Event, error) bool) {}
	}
	if r, ok := log.(Rememberer); ok {
		if events, ok := r.Remembered(id, after, last); ok {
			return func(yield func(Event, error) bool) {
				for _, e := range events {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
	return log.Read(ctx, id, after)
}

// Observer is told after the commit. It must not block.
type Observer interface{ Appended(id ID, last int64) }

// Watcher is told after the commit what lists know of the session now. It must not block.
type Watcher interface{ Changed(Row) }
