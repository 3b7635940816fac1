package packed

import (
	"context"
	"fmt"
	"iter"

	"deckhand/internal/session"
)

// Reading is a walk through one session's events.
type Reading struct {
	ID session.ID
	// N is the number of the session, 0 until it is known, and Last the end of the log when the walk began.
	N, Last int64
	At      int64
	Events  []session.Event
	Done    bool
	Read    int // bytes of all rows, decompressed
	// rows are what the walk has met since the event from, as long as it is little.
	from int64
	rows []*Batch
	size int
	walk *Walk // nil unless marks are checked
}

// Read yields the events of a session. next reads a piece. The marks are checked if the walk begins with the first event.
func Read(ctx context.Context, chain *Chain, id session.ID, after int64, next func(*Reading) error) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		r := &Reading{ID: id, At: max(after, 0)}
		if chain.On() && r.At == 0 {
			r.walk = chain.Walk(id)
		}
		for !r.Done {
			failure := next(r) // after what could be read
			for i, e := range r.Events {
				r.Events[i] = session.Event{} // a consumer that is done with it must be able to free it
				if err := ctx.Err(); err != nil {
					yield(session.Event{}, err)
					return
				}
				if !yield(e, nil) {
					return
				}
			}
			if failure != nil {
				yield(session.Event{}, fmt.Errorf("read session %s after event %d: %w", id, r.At, failure))
				return
			}
		}
	}
}

// Begin is called when the session was looked up. It reports whether the walk is done.
func (r *Reading) Begin(n, last int64, found bool, recent *Recent) (bool, error) {
	r.N, r.Last = n, last
	if !found || r.At >= r.Last {
		r.Done = true
		return true, nil
	}
	if rows := recent.Between(r.ID, r.At, r.Last); rows != nil {
		r.Done = true
		return true, r.Recall(rows)
	}
	return false, nil
}

// Recall gives what is in memory.
func (r *Reading) Recall(rows []*Batch) error {
	for _, row := range rows {
		events, err := row.Decode()
		for _, e := range events {
			if e.Number > r.At {
				r.Events = append(r.Events, e)
			}
		}
		if err != nil {
			return err
		}
		r.At = row.Last
	}
	return nil
}

// Take adds the events of a row that are to be read.
func (r *Reading) Take(last, at int64, row []byte) error {
	body, err := Open(row)
	if err != nil {
		return Damaged(last, err)
	}
	m := &Batch{Last: last, At: at, Body: body}
	if events, _ := m.Decode(); last > r.Last && len(events) > 0 && m.First() > r.At+1 {
		r.walk = nil // the session was deleted since the last piece: what was read cannot be compared with anything
	}
	if r.walk != nil {
		if err := r.walk.Row(last, at, body); err != nil {
			return err
		}
	}
	if err := r.Recall([]*Batch{m}); err != nil {
		return err
	}
	r.Read += len(body)
	if r.size == 0 {
		r.from = m.First() - 1 // the row may begin before what was asked for
	}
	r.rows = append(r.rows, m)
	if r.size += len(m.Body); r.size > MaxTail {
		r.rows = nil
	}
	return nil
}

// End is called after a piece. complete says that there is nothing more.
func (r *Reading) End(complete bool, recent *Recent) error {
	// Not "number = last": a concurrent deletion leaves only its own event, beyond that.
	if r.Done = r.At >= r.Last || complete; !r.Done || r.At != r.Last {
		return nil
	}
	if r.walk != nil {
		if err := r.walk.End(r.N, r.Last); err != nil {
			return err
		}
	}
	if r.size <= MaxTail {
		recent.Add(r.ID, r.from, r.rows...)
	}
	return nil
}

// Remembered implements session.Rememberer.
func Remembered(recent *Recent, id session.ID, after, last int64) ([]session.Event, bool) {
	r := Reading{At: after}
	rows := recent.Between(id, after, last)
	if len(rows) == 0 || r.Recall(rows) != nil {
		return nil, false // what is damaged is reported by Read
	}
	return r.Events, true
}
