package replica

import (
	"context"
	"errors"
	"sync"

	"deckhand/internal/cluster"
	"deckhand/internal/session"
)

// Relay notifies observers and watchers of this server of changes that other servers made.
type Relay struct {
	*Replica
	Sessions *session.Sessions
	Index    session.Index
	// Observers are notified when a session grows.
	Observers []session.Observer
	// Watchers are notified of changed rows that they are interested in.
	Watchers []Watcher
}

// Watcher is a session.Watcher with a filter.
type Watcher struct {
	session.Watcher
	Interested func(id session.ID, owner string) bool
}

// rowsWaiting is how many changed rows wait to be read. Others are dropped, and found by later sweeps.
const rowsWaiting = 1024

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	if r.Alone() {
		return nil
	}
	rows := &changedRows{waiting: map[session.ID]bool{}, wake: make(chan struct{}, 1)}
	stop, err := r.Subscribe(r.Member, func(w cluster.Wake) {
		switch w.Kind {
		case cluster.Grew:
			for _, o := range r.Observers {
				o.Appended(w.Session, w.Last)
			}
		case cluster.RowChanged:
			for _, t := range r.Watchers {
				if t.Interested(w.Session, w.Owner) {
					rows.add(w.Session)
				}
			}
		case cluster.Load:
			r.loads.setCount(w.From, w.Last)
		case cluster.Take:
			if w.To == r.Member {
				r.loads.accept(w.Session)
			}
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-rows.wake:
		}
		for _, id := range rows.take() {
			r.changed(ctx, id)
		}
	}
}

// changed reads a row and notifies the watchers that are interested in it. If the session is in memory, its state is
// updated first, because watchers may use it.
func (r *Relay) changed(ctx context.Context, id session.ID) {
	if _, known := r.Sessions.Peek(id); known {
		if _, err := r.Sessions.Load(ctx, id); err != nil && !errors.Is(err, session.ErrNotFound) {
			return // a later sweep finds it
		}
	}
	row, err := r.Index.Row(ctx, id)
	if err != nil {
		return
	}
	for _, t := range r.Watchers {
		if t.Interested(id, row.Owner) {
			t.Changed(row)
		}
	}
}

// changedRows is the set of sessions whose rows are to be read.
type changedRows struct {
	mu      sync.Mutex
	waiting map[session.ID]bool
	wake    chan struct{}
}

func (c *changedRows) add(id session.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= rowsWaiting {
		return
	}
	c.waiting[id] = true
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *changedRows) take() (ids []session.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.waiting {
		ids = append(ids, id)
	}
	clear(c.waiting)
	return ids
}
