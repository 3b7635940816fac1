package workspace

import (
	"time"

	"deckhand/internal/session"
)

// Waiting is closed when another goroutine waits for a session's place.
func (k *Keeper) Waiting(id session.ID) <-chan struct{} {
	there := make(chan struct{})
	go func() {
		defer close(there)
		for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
			k.mu.Lock()
			p := k.places[id]
			crowd := p != nil && p.users > 1
			k.mu.Unlock()
			if crowd {
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
