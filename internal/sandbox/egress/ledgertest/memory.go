package ledgertest

import (
	"context"
	"slices"
	"sync"

	"deckhand/internal/sandbox/egress"
)

// Memory is a ledger in memory, for tests. The zero value is empty.
type Memory struct {
	mu    sync.Mutex
	boxes map[string]*pages
}

type pages struct {
	last    int64
	entries []egress.Entry
}

var _ egress.Ledger = (*Memory)(nil)

// Record implements egress.Ledger.
func (m *Memory) Record(ctx context.Context, id string, entries []egress.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boxes == nil {
		m.boxes = map[string]*pages{}
	}
	p := m.boxes[id]
	if p == nil {
		p = &pages{}
		m.boxes[id] = p
	}
	for _, e := range entries {
		p.last++
		e.ID = p.last
		p.entries = append(p.entries, e)
	}
	if over := len(p.entries) - egress.KeptEntries; over > 0 {
		p.entries = slices.Delete(p.entries, 0, over)
	}
	return nil
}

// Entries implements egress.Ledger.
func (m *Memory) Entries(ctx context.Context, id string, before int64, limit int) ([]egress.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []egress.Entry
	if p := m.boxes[id]; p != nil {
		for _, e := range slices.Backward(p.entries) {
			if len(found) >= limit {
				break
			}
			if before == 0 || e.ID < before {
				found = append(found, e)
			}
		}
	}
	return found, nil
}

// Forget implements egress.Ledger.
func (m *Memory) Forget(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.boxes, id)
	return nil
}
