// Package memlog is a session.Log in memory: for tests, and as the shortest
// description of what a store must do.
package memlog

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/internal/session"
)

// Log keeps everything in maps. The zero value is not usable; call New.
type Log struct {
	mu     sync.Mutex
	events map[session.ID][]session.Event
	rows   map[session.ID]session.Row
	ledger ledger
}

// New makes an empty log.
func New() *Log {
	return &Log{events: map[session.ID][]session.Event{}, rows: map[session.ID]session.Row{}, ledger: newLedger()}
}

// Append implements session.Log.
func (l *Log) Append(ctx context.Context, b session.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows[b.ID].Last != b.After {
		return session.ErrConflict
	}
	if err := l.ledger.charge(b.Row.Owner, b.ID, b.Charge); err != nil {
		return err
	}
	kept := append(l.events[b.ID], b.Events...) // readers hold a shorter slice of it and do not see the rest
	if n := len(kept); n > 0 && kept[n-1].Payload.Kind() == session.KindDeleted {
		kept = kept[n-1:]
	}
	l.events[b.ID], l.rows[b.ID] = kept, b.Row
	return nil
}

// AppendAll implements session.WholeLog.
func (l *Log) AppendAll(ctx context.Context, batches []session.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	id := batches[0].ID
	if _, exists := l.rows[id]; exists {
		return session.ErrConflict
	}
	for _, b := range batches {
		l.events[id], l.rows[id] = append(l.events[id], b.Events...), b.Row
	}
	return nil
}

// Read implements session.Log.
func (l *Log) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		l.mu.Lock()
		events := l.events[id]
		l.mu.Unlock()
		at, _ := slices.BinarySearchFunc(events, after+1, func(e session.Event, n int64) int { return cmp.Compare(e.Number, n) })
		for _, e := range events[at:] {
			if err := ctx.Err(); err != nil {
				yield(session.Event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Row implements session.Index.
func (l *Log) Row(_ context.Context, id session.ID) (session.Row, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.rows[id]
	if !ok {
		return r, session.ErrNotFound
	}
	return r, nil
}

// Rows implements session.Index.
func (l *Log) Rows(_ context.Context, q session.Query) ([]session.Row, error) {
	rows := l.matching(func(r session.Row) bool {
		return r.Owner == q.Owner && !r.Deleted &&
			(q.Repository == "" || r.Repository == q.Repository) &&
			(q.Trigger == "" || r.Trigger == q.Trigger) &&
			(q.Status == "" || r.Shown() == q.Status) &&
			(contains(r.Title, q.Text) || contains(r.Repository, q.Text) || (len(r.ID) != 32 || len(q.Text) >= 8) && contains(string(r.ID), q.Text)) &&
			(q.Before == nil || after(r, *q.Before))
	})
	slices.SortFunc(rows, func(a, b session.Row) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return rows[:min(len(rows), q.Limit)], nil
}

// contains does not care about upper and lower case.
func contains(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

// after reports whether r comes later than c in list order.
func after(r session.Row, c session.Cursor) bool {
	return r.CreatedAt.Before(c.CreatedAt) || r.CreatedAt.Equal(c.CreatedAt) && r.ID < c.ID
}

// Wanting implements session.Index.
func (l *Log) Wanting(_ context.Context, held []string) iter.Seq2[session.Waiting, error] {
	return func(yield func(session.Waiting, error) bool) {
		rows := l.matching(func(r session.Row) bool { return r.Wants && (r.Holder == "" || !slices.Contains(held, r.Holder)) })
		oldestFirst(rows)
		for _, r := range rows {
			if !yield(session.Waiting{ID: r.ID, Owner: r.Owner}, nil) {
				return
			}
		}
	}
}

// Idle implements session.Index.
func (l *Log) Idle(_ context.Context, before time.Time, limit int) ([]session.ID, error) {
	return ids(l.matching(func(r session.Row) bool {
		return !r.Wants && r.Status == session.Running && r.UpdatedAt.Before(before)
	}), limit), nil
}

// Unchanged implements session.Index.
func (l *Log) Unchanged(_ context.Context, before time.Time) iter.Seq2[session.ID, error] {
	return func(yield func(session.ID, error) bool) {
		for _, r := range l.matching(func(r session.Row) bool { return !r.Deleted && r.UpdatedAt.Before(before) }) {
			if !yield(r.ID, nil) {
				return
			}
		}
	}
}

func (l *Log) matching(keep func(session.Row) bool) []session.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows []session.Row
	for _, r := range l.rows {
		if keep(r) {
			rows = append(rows, r)
		}
	}
	return rows
}

// oldestFirst sorts by the last change.
func oldestFirst(rows []session.Row) {
	slices.SortFunc(rows, func(a, b session.Row) int {
		return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// ids is the oldest-changed first.
func ids(rows []session.Row, limit int) []session.ID {
	oldestFirst(rows)
	var out []session.ID
	for _, r := range rows[:min(len(rows), limit)] {
		out = append(out, r.ID)
	}
	return out
}
