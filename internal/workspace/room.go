package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// tooMany says that a user has as many running sandboxes as one may have.
type tooMany struct {
	owner string
	count int
}

func (e *tooMany) Error() string {
	return fmt.Sprintf("You have reached the limit of %d running sandboxes, and all of them are in use. Stop a conversation, or wait until one is idle.", e.count)
}

const (
	// roomTime is how long a sandbox waits for the suspension of another one.
	roomTime = 10 * time.Second
	roomStep = 10 * time.Millisecond
)

// room reserves a place for a sandbox. A user who has too many gets one by the suspension of the
// one that was not used for the longest time.
func (k *Keeper) room(ctx context.Context, p *place, st session.State) (opened func(), err error) {
	wait, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	tried := map[*place]bool{}
	for {
		opened, err = k.reserve(p, st)
		var full *tooMany
		if !errors.As(err, &full) {
			return opened, err
		}
		if !k.suspendOne(wait, full.owner, tried) {
			return nil, errors.Join(ctx.Err(), &sandbox.Unavailable{Reason: full.Error()})
		}
	}
}

// suspendOne suspends an unused sandbox of a user, or waits a moment for one that is being
// suspended. It is false if there is none.
func (k *Keeper) suspendOne(ctx context.Context, owner string, tried map[*place]bool) bool {
	if _, ok := k.Driver.(sandbox.Suspender); !ok || k.Suspension.After <= 0 || ctx.Err() != nil {
		return false
	}
	k.mu.Lock()
	var oldest *place
	coming := false
	for _, p := range k.places {
		switch {
		case p.owner != owner || p.box == nil || k.closed:
		case p.idle.suspending || p.ending:
			coming = true
		case p.users == 0 && !tried[p] && (oldest == nil || p.idle.since.Before(oldest.idle.since)):
			oldest = p
		}
	}
	if oldest != nil {
		tried[oldest] = true
		oldest.idle.suspending = true
	}
	k.mu.Unlock()
	switch {
	case oldest != nil:
		k.suspendPlace(oldest)
		return true
	case coming:
		select {
		case <-time.After(roomStep):
		case <-ctx.Done():
		}
		return true
	}
	return false
}

// reserve counts a sandbox that is about to run for its owner, who may have so
// many and no more, and use so much disk. What is kept is counted by itself from then on.
func (k *Keeper) reserve(p *place, st session.State) (opened func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	owner, others := st.Owner, 0
	for _, o := range k.places {
		if o != p && o.owner == owner && (o.box != nil || o.opening) {
			others++
		}
	}
	if k.PerUser > 0 && others >= k.PerUser {
		return nil, &tooMany{owner, others}
	}
	if !st.Up { // what runs already is attached to
		if err := k.checkDisk(owner); err != nil {
			return nil, err
		}
	}
	p.owner, p.opening = owner, true
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		p.opening = false
	}, nil
}
