package settings

import (
	"bytes"
	"context"
	"sync"
)

// MemStore is a Store in memory.
type MemStore struct {
	mu   sync.Mutex
	recs map[string]Record
}

// NewMemStore returns an empty MemStore.
func NewMemStore() *MemStore { return &MemStore{recs: map[string]Record{}} }

// LoadSettings implements Store.
func (m *MemStore) LoadSettings(_ context.Context, user string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, ok := m.recs[user]
	if !ok {
		return Record{}, ErrNotFound
	}
	rec.Body = bytes.Clone(rec.Body)
	return rec, nil
}

// SaveSettings implements Store.
func (m *MemStore) SaveSettings(_ context.Context, rec Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recs[rec.User].Version != rec.Version-1 {
		return ErrConflict
	}
	rec.Body = bytes.Clone(rec.Body)
	m.recs[rec.User] = rec
	return nil
}
