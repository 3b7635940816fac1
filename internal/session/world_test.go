package session_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// errStore is a store that broke.
var errStore = errors.New("the store broke")

// authorKey is under which a context tells whose hand writes: the claim of a loop.
type authorKey struct{}

// as marks what is done with the context as the work of the loop that holds claim.
func as(claim int64) context.Context {
	return context.WithValue(context.Background(), authorKey{}, claim)
}

// fault is what goes wrong with the next append or read.
type fault struct {
	// race is done before the append is tried: another writer is faster.
	race func()
	// refuse fails the append without storing; forget stores, and fails then;
	// repeat hands it to the store twice, as a careless retry would.
	refuse, forget, repeat bool
	read                   bool
}

// faulty is a Log that remembers every event it ever stored, and by whom, and
// that fails on demand.
type faulty struct {
	*memlog.Log
	mu      sync.Mutex
	events  map[session.ID][]session.Event
	authors map[session.ID]map[int64]int64
	next    fault
	appends int
}

func newFaulty() *faulty {
	return &faulty{Log: memlog.New(), events: map[session.ID][]session.Event{}, authors: map[session.ID]map[int64]int64{}}
}

// fail arms the next fault, once.
func (l *faulty) fail(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = f
}

func (l *faulty) Append(ctx context.Context, b session.Batch) error {
	l.mu.Lock()
	f := l.next
	l.next = fault{}
	l.appends++
	l.mu.Unlock()
	if f.race != nil {
		f.race()
	}
	if f.refuse {
		return errStore
	}
	l.mu.Lock() // stored and remembered in one go, or two writers are remembered in the wrong order
	defer l.mu.Unlock()
	err := l.Log.Append(ctx, b)
	if err != nil {
		return err
	}
	if f.repeat && !errors.Is(l.Log.Append(ctx, b), session.ErrConflict) {
		panic("the store took one batch twice")
	}
	l.events[b.ID] = append(l.events[b.ID], b.Events...)
	if claim, ok := ctx.Value(authorKey{}).(int64); ok {
		if l.authors[b.ID] == nil {
			l.authors[b.ID] = map[int64]int64{}
		}
		for _, e := range b.Events {
			l.authors[b.ID][e.Number] = claim
		}
	}
	if f.forget {
		return errStore
	}
	return nil
}

func (l *faulty) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	l.mu.Lock()
	f := l.next
	if f.read {
		l.next = fault{}
	}
	l.mu.Unlock()
	if f.read {
		return func(yield func(session.Event, error) bool) { yield(session.Event{}, errStore) }
	}
	return l.Log.Read(ctx, id, after)
}

// history is everything that was ever stored of a session, with what the store dropped since.
func (l *faulty) history(id session.ID) ([]session.Event, map[int64]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events[id]), maps.Clone(l.authors[id])
}

// refold is the state that the whole history adds up to.
func (l *faulty) refold(id session.ID) session.State {
	st := session.State{ID: id}
	events, _ := l.history(id)
	for _, e := range events {
		st = st.Apply(e)
	}
	return st
}

// do is a rule that appends exactly these.
func do(p ...session.Payload) func(session.State) ([]session.Payload, error) {
	return func(session.State) ([]session.Payload, error) { return p, nil }
}

// limit is a budget, if there is one.
func limit(m session.Money, limited bool) *session.Money {
	if !limited {
		return nil
	}
	return &m
}
