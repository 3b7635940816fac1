package replica

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/cluster"
)

// lease wraps Leases and remembers when this server renewed its lease: for the metrics, and to tell whether others had the time to
// renew theirs.
type lease struct {
	cluster.Leases
	renewed atomic.Pointer[time.Time] // nil without a lease
	expired atomic.Int64              // how often it ended before it was renewed

	mu    sync.Mutex
	since time.Time // the first renewal after which all succeeded; zero if the last one failed
}

// Hold implements cluster.Leases.
func (l *lease) Hold(ctx context.Context, member string) error {
	return l.note(time.Now(), l.Leases.Hold(ctx, member))
}

// Renew implements cluster.Leases.
func (l *lease) Renew(ctx context.Context, member string) error {
	return l.note(time.Now(), l.Leases.Renew(ctx, member))
}

// Release implements cluster.Leases.
func (l *lease) Release(ctx context.Context, member string) error {
	l.renewed.Store(nil)
	return l.Leases.Release(ctx, member)
}

func (l *lease) note(at time.Time, err error) error {
	switch {
	case err == nil:
		l.renewed.Store(&at)
	case errors.Is(err, cluster.ErrExpired):
		l.renewed.Store(nil)
		l.expired.Add(1)
	}
	if err != nil {
		l.interrupt()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		l.since = time.Now()
	}
	return nil
}

// interrupt records that this server has no lease, or may have none.
func (l *lease) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Time{}
}

// remaining returns how long the lease lasts if it is not renewed.
func (l *lease) remaining() time.Duration {
	at := l.renewed.Load()
	if at == nil {
		return 0
	}
	return max(0, l.Duration()-time.Since(*at))
}

// unsure returns for how long a member without a lease may still be alive: until this server has renewed its own for the duration of
// one. When the database is back after an outage, all leases may have ended, and the first server to renew its lease sees no other.
func (l *lease) unsure() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		return l.Duration()
	}
	return max(0, l.Duration()-time.Since(l.since))
}
