package access

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// MemStore is a Store in memory: for tests, and for whatever needs no server.
type MemStore struct {
	mu         sync.Mutex
	users      map[string]User
	keys       map[string]Key
	byHash     map[[32]byte]string
	links      map[[2]string]Link // by issuer and subject
	generation int64
}

// NewMemStore is an empty MemStore.
func NewMemStore() *MemStore {
	return &MemStore{users: map[string]User{}, keys: map[string]Key{}, byHash: map[[32]byte]string{}, links: map[[2]string]Link{}}
}

func (m *MemStore) CreateUser(_ context.Context, u User) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.users[u.Name]; taken {
		return ErrExists
	}
	m.users[u.Name] = u
	m.generation++
	return nil
}

func (m *MemStore) User(_ context.Context, name string) (User, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, ok := m.users[name]
	if !ok {
		return User{}, ErrNotFound
	}
	return u, nil
}

func (m *MemStore) Users(context.Context) ([]User, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.users), func(a, b User) int { return cmp.Compare(a.Name, b.Name) }), nil
}

func (m *MemStore) SetUserDisabled(_ context.Context, name string, disabled bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, ok := m.users[name]
	if !ok {
		return ErrNotFound
	}
	u.Disabled = disabled
	m.users[name] = u
	m.generation++
	return nil
}

func (m *MemStore) SetUserAdmin(_ context.Context, name string, admin bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, ok := m.users[name]
	if !ok {
		return ErrNotFound
	}
	u.Admin = admin
	m.users[name] = u
	m.generation++
	return nil
}

func (m *MemStore) CreateLinked(_ context.Context, u User, l Link) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	person := [2]string{l.Issuer, l.Subject}
	_, nameTaken := m.users[u.Name]
	_, linked := m.links[person]
	if nameTaken || linked {
		return ErrExists
	}
	m.users[u.Name], m.links[person] = u, l
	m.generation++
	return nil
}

func (m *MemStore) Linked(_ context.Context, issuer, subject string) (User, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.links[[2]string{issuer, subject}]
	if !ok {
		return User{}, ErrNotFound
	}
	return m.users[l.User], nil
}

func (m *MemStore) SetEmail(_ context.Context, issuer, subject string, e Email) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	person := [2]string{issuer, subject}
	l, ok := m.links[person]
	if !ok {
		return ErrNotFound
	}
	l.Email = e
	m.links[person] = l
	return nil
}

func (m *MemStore) Email(_ context.Context, user string) (Email, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.links {
		if l.User == user {
			return l.Email, nil
		}
	}
	return Email{}, ErrNotFound
}

func (m *MemStore) CreateKey(_ context.Context, k Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.users[k.User]; !ok {
		return ErrNotFound
	}
	_, idTaken := m.keys[k.ID]
	_, hashTaken := m.byHash[k.Hash]
	if idTaken || hashTaken {
		return ErrExists
	}
	m.keys[k.ID] = k
	m.byHash[k.Hash] = k.ID
	m.generation++
	return nil
}

func (m *MemStore) KeyByHash(_ context.Context, hash [32]byte) (Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.byHash[hash]
	if !ok {
		return Key{}, ErrNotFound
	}
	return m.keys[id], nil
}

func (m *MemStore) Keys(_ context.Context, user string) ([]Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Key
	for _, k := range m.keys {
		if user == "" || k.User == user {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b Key) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

func (m *MemStore) RevokeKey(_ context.Context, id string, at time.Time) (Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.keys[id]
	if !ok {
		return Key{}, ErrNotFound
	}
	if k.RevokedAt == nil {
		k.RevokedAt = &at
		m.keys[id] = k
	}
	m.generation++
	return k, nil
}

func (m *MemStore) AccessGeneration(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation, nil
}
