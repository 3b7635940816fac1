package workspace

import (
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// Attached is a running sandbox that this server is attached to.
type Attached struct {
	ID     session.ID
	Owner  string
	Box    *sandbox.Sandbox
	Limits sandbox.Limits
	// Disk is the size of its files as measured last; -1 if it was not measured.
	Disk int64
}

// Attached lists the running sandboxes, and counts the suspended ones.
func (k *Keeper) Attached() (running []Attached, suspended int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, p := range k.places {
		if p.box != nil {
			running = append(running, Attached{ID: id, Owner: p.owner, Box: p.box, Limits: p.limits, Disk: p.used})
		}
	}
	return running, len(k.suspended.ids)
}

// Running is how many sandboxes this server is attached to.
func (k *Keeper) Running() int {
	running, _ := k.Attached()
	return len(running)
}
