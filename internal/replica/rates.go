package replica

import (
	"context"
	"encoding/json"
	"time"

	"deckhand/internal/access"
)

const (
	// ratesEvery is how often each server publishes the uses of its rate limits.
	ratesEvery = 200 * time.Millisecond
	// useSize is an upper bound for the size of a Use in a message.
	useSize = 300
)

// uses is a message with uses of rate limits.
type uses struct {
	From string       `json:"from"`
	Uses []access.Use `json:"uses"`
}

// shareRates publishes the uses of the rate limits of this server, and counts those of other servers, until ctx ends.
func (p *Parts) shareRates(ctx context.Context) error {
	stop, err := p.hear("rates", func(data []byte) {
		var heard uses
		if json.Unmarshal(data, &heard) == nil && heard.From != p.Member {
			p.rates.Charge(heard.Uses)
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
		for all := p.rates.Uses(); len(all) > 0; {
			n := min(len(all), max(1, p.room()/useSize))
			p.say("rates", uses{p.Member, all[:n]})
			all = all[n:]
		}
	}
}
