package replica

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckhand/internal/cluster"
)

// lease wraps Leases and remembers when this server renewed its lease, for the metrics.
type lease struct {
	cluster.Leases
	renewed atomic.Pointer[time.Time] // nil without a lease
	expired atomic.Int64              // how often it ended before it was renewed
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
	return err
}

// remaining returns how long the lease lasts if it is not renewed.
func (l *lease) remaining() time.Duration {
	at := l.renewed.Load()
	if at == nil {
		return 0
	}
	return max(0, l.Duration()-time.Since(*at))
}

// Collectors returns the metrics of one of several servers; none for a single server.
func (r *Replica) Collectors() []prometheus.Collector {
	held, ok := r.Leases.(*lease)
	if !ok {
		return nil
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	counter := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
	}
	return []prometheus.Collector{
		gauge("deckhand_nats_connected", "1 if the server is connected to NATS, otherwise 0.", func() float64 {
			if r.conn.Online() {
				return 1
			}
			return 0
		}),
		counter("deckhand_nats_lost_total", "Messages to other servers that were not sent, because there was no connection, too many were pending, or they were too large for the NATS server.", func() float64 { return float64(r.conn.Lost()) }),
		gauge("deckhand_lease_remaining_seconds", "Time until other servers may take over the conversations of this one, unless it renews its lease; 0 if its lease has ended.", func() float64 { return held.remaining().Seconds() }),
		counter("deckhand_lease_expired_total", "How often the lease of this server ended before it was renewed.", func() float64 { return float64(held.expired.Load()) }),
	}
}
