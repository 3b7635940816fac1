package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// store is the disk: it outlives servers. Beside the log it keeps all events for
// ever, and folds them as they come, so that every single one is checked.
type store struct {
	*memlog.Log
	w *world

	mu     sync.Mutex
	events map[session.ID][]session.Event
	states map[session.ID]session.State
}

func newStore(w *world) *store {
	return &store{Log: memlog.New(), w: w, events: map[session.ID][]session.Event{}, states: map[session.ID]session.State{}}
}

// put stores a batch and checks each of its events.
func (s *store) put(ctx context.Context, by *server, b session.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Log.Append(ctx, b); err != nil {
		return err
	}
	st := s.states[b.ID]
	st.ID = b.ID
	for _, e := range b.Events {
		if err := st.Check(e.Payload); err != nil {
			s.w.breach("%s: event %d does not fit: %v", b.ID, e.Number, err)
		}
		if c, ok := e.Payload.(session.Claimed); ok && s.w.members != nil {
			s.w.claimed(b.ID, st.Holder(), c.By)
		}
		st = st.Apply(e)
		if limit := s.w.budget(); st.Committed() > limit {
			s.w.breach("%s: after event %d (%s), %d are spent or reserved of %d", b.ID, e.Number, e.Payload.Kind(), st.Committed(), limit)
		}
		if a, ok := e.Payload.(session.ModelAsked); ok && by != nil {
			by.asked[b.ID] = asked{number: e.Number, upTo: a.UpTo, purpose: a.Purpose, reserved: a.Reserved}
		}
	}
	s.events[b.ID], s.states[b.ID] = append(s.events[b.ID], b.Events...), st
	return nil
}

// state is the session as it is, whatever servers believe.
func (s *store) state(id session.ID) session.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[id]
}

// history is all that was ever stored of a session, also of a deleted one.
func (s *store) history(id session.ID) []session.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events[id])
}

// meddle appends something harmless, as another process would: a writer that is about
// to append finds that the session grew.
func (s *store) meddle(id session.ID, n int) {
	other := session.New(outside{s})
	_, _ = other.Update(context.Background(), id, func(st session.State) ([]session.Payload, error) {
		return st.Rename(fmt.Sprintf("Title %d", n))
	})
}

// outside is the store for those who are no server.
type outside struct{ *store }

func (o outside) Append(ctx context.Context, b session.Batch) error { return o.put(ctx, nil, b) }

// What the store says when it fails, and what a dead server hears.
var (
	errDisk = errors.New("the disk does not answer")
	errDead = errors.New("this server is dead")
)

// reach is the store as one server reaches it: slowly, with faults, and not at
// all once the server is dead.
type reach struct {
	*store
	server *server
}

// Append implements session.Log.
func (d reach) Append(ctx context.Context, b session.Batch) error {
	r := d.w.dice("append", b.ID, b.After, len(b.Events))
	if err := pass(ctx, upTo(r, 20*time.Millisecond)); err != nil {
		return err
	}
	var err error
	switch {
	case d.server.dead.Load():
		return errDead
	case d.w.strikes(r, 20):
		d.w.fault("append refused")
		err = errDisk
	case d.w.strikes(r, 20):
		d.w.fault("append stored, answer lost")
		if err = d.put(ctx, d.server, b); err == nil {
			err = errDisk
		}
	case d.w.strikes(r, 30) && b.After > 0:
		d.w.fault("append conflict")
		d.meddle(b.ID, r.IntN(1000))
		err = d.put(ctx, d.server, b)
	default:
		err = d.put(ctx, d.server, b)
	}
	if err := pass(ctx, upTo(r, 20*time.Millisecond)); err != nil {
		return err
	}
	if d.server.dead.Load() {
		return errDead
	}
	return err
}

// Read implements session.Log.
func (d reach) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		if d.server.spins() {
			yield(session.Event{}, errDead)
			return
		}
		r := d.w.dice("read", d.server.n, id)
		fails, at := d.w.strikes(r, 4), r.Int64N(5)
		for e, err := range d.Log.Read(ctx, id, after) {
			if d.server.dead.Load() {
				yield(session.Event{}, errDead)
				return
			}
			if fails && e.Number > after+at {
				d.w.fault("read broken off")
				yield(session.Event{}, errDisk)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Wanting implements session.Index.
func (d reach) Wanting(ctx context.Context, held []string) iter.Seq2[session.Waiting, error] {
	if d.w.strikes(d.w.dice("wanting", d.server.n), 5) {
		d.w.fault("index does not answer")
		return func(yield func(session.Waiting, error) bool) { yield(session.Waiting{}, errDisk) }
	}
	return d.Log.Wanting(ctx, held)
}
