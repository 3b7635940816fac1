package replica

import (
	"context"
	"errors"
	"sync"

	"deckhand/internal/cluster"
	"deckhand/internal/session"
)

// Relay tells the parts of this server what other servers have changed, as they are told of what this one changes.
type Relay struct {
	*Replica
	Sessions *session.Sessions
	Index    session.Index
	// Observers are told that a session grew.
	Observers []session.Observer
	// Watchers are told what lists know of a session, if they are interested in it.
	Watchers []Watcher
}

// Watcher is a session.Watcher that knows what it is interested in.
type Watcher struct {
	session.Watcher
	Interested func(id session.ID, owner string) bool
}

// rowsWaiting is how many changed rows wait to be read; what does not fit is noticed later.
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
			r.loads.heard(w.From, w.Last)
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

// changed reads a row and tells those who want to know. The fold of the session is brought up to date before, because
// they may look at it.
func (r *Relay) changed(ctx context.Context, id session.ID) {
	if _, known := r.Sessions.Peek(id); known {
		if _, err := r.Sessions.Load(ctx, id); err != nil && !errors.Is(err, session.ErrNotFound) {
			return // it is found again by those who look now and then
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

// changedRows are the sessions whose rows are to be read, each once.
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
