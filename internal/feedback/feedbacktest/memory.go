package feedbacktest

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"deckhand/internal/feedback"
)

// Memory is a store in memory, for tests. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	last    int64
	entries []feedback.Entry
}

var _ feedback.Store = (*Memory)(nil)

// Add implements feedback.Store.
func (m *Memory) Add(ctx context.Context, e feedback.Entry) (feedback.Entry, error) {
	if err := ctx.Err(); err != nil {
		return e, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Rating > 0 {
		m.entries = slices.DeleteFunc(m.entries, func(o feedback.Entry) bool {
			return o.Rating > 0 && o.User == e.User && o.Session == e.Session && o.Event == e.Event
		})
	}
	m.last++
	e.ID = m.last
	m.entries = append(m.entries, e)
	about := 0
	for _, o := range m.entries {
		if o.Session == e.Session {
			about++
		}
	}
	if about > feedback.Kept {
		oldest := slices.IndexFunc(m.entries, func(o feedback.Entry) bool { return o.Session == e.Session })
		m.entries = slices.Delete(m.entries, oldest, oldest+1)
	}
	return e, nil
}

// Ratings implements feedback.Store.
func (m *Memory) Ratings(ctx context.Context, user, session string) ([]feedback.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []feedback.Entry
	for _, e := range m.entries {
		if e.Rating > 0 && e.User == user && e.Session == session {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b feedback.Entry) int { return cmp.Compare(a.Event, b.Event) })
	return found, ctx.Err()
}

// Page implements feedback.Store.
func (m *Memory) Page(ctx context.Context, before int64, limit int) ([]feedback.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []feedback.Entry
	for _, e := range slices.Backward(m.entries) {
		if len(found) < limit && (before == 0 || e.ID < before) {
			found = append(found, e)
		}
	}
	return found, ctx.Err()
}

// Forget implements feedback.Store.
func (m *Memory) Forget(ctx context.Context, session string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = slices.DeleteFunc(m.entries, func(e feedback.Entry) bool { return e.Session == session })
	return ctx.Err()
}
