package replica

import (
	"context"
	"encoding/json"
	"time"

	"deckhand/internal/access"
)

const (
	// ratesEvery is how often each server publishes the counts of its rate limits.
	ratesEvery = 200 * time.Millisecond
	// countSize is an upper bound for the size of a Count in a message.
	countSize = 300
)

// shareRates publishes how often the rate limits of this server counted, and applies the counts of other servers, until ctx ends.
func (p *Parts) shareRates(ctx context.Context) error {
	stop, err := p.receive("rates", func(data []byte) {
		var counts []access.Count
		if json.Unmarshal(data, &counts) == nil {
			p.rates.ApplyCounts(counts)
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	tick := time.NewTicker(ratesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for all := p.rates.TakeCounts(); len(all) > 0; {
			n := min(len(all), max(1, p.room()/countSize))
			p.Replica.send("rates", all[:n])
			all = all[n:]
		}
	}
}
