// Package diskuse remembers what workspaces take up on disk.
package diskuse

import (
	"maps"
	"sync"

	"deckhand/internal/session"
)

// Share is what a workspace takes up on disk, as it was measured last.
type Share struct {
	Owner string
	Bytes int64
	// Ran is true if the sandbox was running then: it may have written more since.
	Ran bool
}

// Table has the shares of all workspaces.
type Table struct {
	mu     sync.Mutex
	shares map[session.ID]Share
}

// Set remembers what a workspace takes up.
func (t *Table) Set(id session.ID, s Share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shares == nil {
		t.shares = map[session.ID]Share{}
	}
	t.shares[id] = s
}

// Get returns what a workspace takes up, if it was measured.
func (t *Table) Get(id session.ID) (Share, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.shares[id]
	return s, ok
}

// Remove forgets a workspace that is gone.
func (t *Table) Remove(id session.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.shares, id)
}

// Keep forgets all workspaces but those that are there.
func (t *Table) Keep(there map[session.ID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.shares, func(id session.ID, _ Share) bool { return !there[id] })
}

// Used returns what the workspaces of an owner take up.
func (t *Table) Used(owner string) (bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.shares {
		if s.Owner == owner {
			bytes += s.Bytes
		}
	}
	return bytes
}
