package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is Leases and Wakes within one process. A server that has its data for
// itself is the only member of one.
type Memory struct {
	duration time.Duration
	now      func() time.Time

	mu          sync.Mutex
	ends        map[string]time.Time // by member
	subscribers map[*subscriber]bool
}

// NewMemory makes a cluster without members. Leases last for duration, or until
// they are released if it is 0. now is the clock; nil is time.Now.
func NewMemory(duration time.Duration, now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{duration: duration, now: now, ends: map[string]time.Time{}, subscribers: map[*subscriber]bool{}}
}

// Hold implements Leases.
func (m *Memory) Hold(ctx context.Context, member string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.ends[member] = m.now().Add(m.duration)
	return nil
}

// Renew implements Leases.
func (m *Memory) Renew(ctx context.Context, member string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if !m.live(member) {
		return ErrExpired
	}
	m.ends[member] = m.now().Add(m.duration)
	return nil
}

// Release implements Leases.
func (m *Memory) Release(_ context.Context, member string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ends, member)
	return nil
}

// Live implements Leases.
func (m *Memory) Live(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	maps.DeleteFunc(m.ends, func(member string, _ time.Time) bool { return !m.live(member) })
	return slices.Sorted(maps.Keys(m.ends)), nil
}

// live is called with mu held.
func (m *Memory) live(member string) bool {
	end, ok := m.ends[member]
	return ok && (m.duration == 0 || m.now().Before(end))
}

// Duration implements Leases.
func (m *Memory) Duration() time.Duration { return m.duration }

// maxWakes is how many wakes wait for a subscriber before they are lost.
const maxWakes = 1024

// subscriber has a goroutine that hands over its wakes.
type subscriber struct {
	member string
	wakes  chan Wake
}

// Publish implements Wakes.
func (m *Memory) Publish(w Wake) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subscribers {
		if s.member == w.From {
			continue
		}
		select {
		case s.wakes <- w:
		default:
		}
	}
}

// Subscribe implements Wakes.
func (m *Memory) Subscribe(member string, handle func(Wake)) (stop func(), err error) {
	s := &subscriber{member: member, wakes: make(chan Wake, maxWakes)}
	stopping, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopping:
				return
			case w := <-s.wakes:
				handle(w)
			}
		}
	}()
	m.mu.Lock()
	m.subscribers[s] = true
	m.mu.Unlock()
	return sync.OnceFunc(func() {
		m.mu.Lock()
		delete(m.subscribers, s)
		m.mu.Unlock()
		close(stopping)
		<-ended
	}), nil
}

var (
	_ Leases = (*Memory)(nil)
	_ Wakes  = (*Memory)(nil)
)
