package replica

import "github.com/prometheus/client_golang/prometheus"

// Collectors returns the metrics of one of several servers; none for a single server.
func (r *Replica) Collectors() []prometheus.Collector {
	if r.Alone() {
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
		gauge("deckhand_lease_remaining_seconds", "Time until other servers may take over the conversations of this one, unless it renews its lease; 0 if its lease has ended.", func() float64 { return r.held.remaining().Seconds() }),
		counter("deckhand_lease_expired_total", "How often the lease of this server ended before it was renewed.", func() float64 { return float64(r.held.expired.Load()) }),
	}
}
