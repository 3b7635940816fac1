package secret

import (
	"bytes"
	"context"
	"maps"
	"sync"
)

// MemKeys is a KeyStore in memory.
type MemKeys struct {
	mu     sync.Mutex
	master string
	keys   map[string]DataKey
}

// NewMemKeys returns an empty MemKeys.
func NewMemKeys() *MemKeys { return &MemKeys{keys: map[string]DataKey{}} }

// MasterID implements KeyStore.
func (m *MemKeys) MasterID(context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.master, nil
}

// InitMaster implements KeyStore.
func (m *MemKeys) InitMaster(_ context.Context, id string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.master == "" {
		m.master = id
	}
	return m.master, nil
}

// DataKey implements KeyStore.
func (m *MemKeys) DataKey(_ context.Context, user string) (DataKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.keys[user]
	if !ok {
		return DataKey{}, ErrNoDataKey
	}
	k.Wrapped = bytes.Clone(k.Wrapped)
	return k, nil
}

// AddDataKey implements KeyStore.
func (m *MemKeys) AddDataKey(_ context.Context, k DataKey) (DataKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.MasterID != m.master {
		return DataKey{}, ErrMasterChanged
	}
	if have, ok := m.keys[k.User]; ok {
		return have, nil
	}
	k.Wrapped = bytes.Clone(k.Wrapped)
	m.keys[k.User] = k
	return k, nil
}

// Rewrap implements KeyStore.
func (m *MemKeys) Rewrap(_ context.Context, oldID, newID string, fn func(DataKey) (DataKey, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.master != oldID {
		return ErrMasterChanged
	}
	next := maps.Clone(m.keys)
	for user, k := range m.keys {
		k, err := fn(k)
		if err != nil {
			return err
		}
		next[user] = k
	}
	m.master, m.keys = newID, next
	return nil
}
