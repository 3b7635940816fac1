package workspace

import (
	"context"
	"time"

	"deckhand/internal/session"
)

// Waiting is closed when another goroutine waits for a session's place.
func (k *Keeper) Waiting(id session.ID) <-chan struct{} {
	return k.when(id, func(p *place) bool { return p.users > 1 })
}

// Opening is closed when a session's sandbox is being started or attached to.
func (k *Keeper) Opening(id session.ID) <-chan struct{} {
	return k.when(id, func(p *place) bool { return p.opening })
}

func (k *Keeper) when(id session.ID, ok func(*place) bool) <-chan struct{} {
	there := make(chan struct{})
	go func() {
		defer close(there)
		for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
			k.mu.Lock()
			p := k.places[id]
			now := p != nil && ok(p)
			k.mu.Unlock()
			if now {
				tick.Stop()
				return
			}
		}
	}()
	return there
}

// Refused is how often in a row a session's sandbox could not be suspended.
func (k *Keeper) Refused(id session.ID) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.places[id]; p != nil {
		return p.idle.refused
	}
	return 0
}

// HoldGate holds the gate of a session's checkpoints.
func (k *Keeper) HoldGate(ctx context.Context, id session.ID) (leave func(), err error) {
	k.mu.Lock()
	p := k.places[id]
	k.mu.Unlock()
	open, err := p.saved.gate.Enter(ctx)
	return func() { k.leaveGate(p, open) }, err
}
