package replica

import (
	"context"
	"encoding/json"
	"time"

	"deckhand/internal/admission"
)

const (
	// Changes of the queue are collected for newsEvery, or for longNewsEvery if more than longQueue conversations wait. The whole
	// queue is sent with every listEvery-th load, in case a message was lost.
	newsEvery, longNewsEvery = 100 * time.Millisecond, time.Second
	longQueue                = 200
	listEvery                = 5
	// slotSize is an upper bound for the size of a conversation in a message, and newsMost the maximum number of conversations.
	slotSize = 400
	newsMost = 500
)

// shareQueue publishes which conversations run and wait here, and passes what other servers publish to the Gate, until ctx ends.
func (c *Claimer) shareQueue(ctx context.Context) error {
	stop, err := c.hear("queue", c.heardQueue)
	if err != nil {
		return err
	}
	defer stop()
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	last := time.Time{}
	for n := 0; ; {
		all := false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.Gate.Expire(loadStale)
			all = n%listEvery == 0
			n++
			if !all { // so that the others know that this server is alive
				c.say("queue", c.Gate.Beat())
			}
		case <-c.Gate.Changed():
			every := newsEvery
			if c.Gate.Waiting() > longQueue {
				every = longNewsEvery
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(every - time.Since(last)):
			}
		}
		last = time.Now()
		for _, news := range c.Gate.News(all, min(newsMost, max(1, c.room()/slotSize))) {
			c.say("queue", news)
		}
	}
}

// heardQueue handles news of the queue of a server.
func (c *Claimer) heardQueue(data []byte) {
	var news admission.News
	if json.Unmarshal(data, &news) != nil || news.From == c.Member {
		return
	}
	c.Gate.Heard(news)
	if news.Slots == 0 {
		return
	}
	c.loads.slots(news.From, news.Free)
	if news.Free > 0 && c.Gate.Waiting() > 0 {
		select {
		case c.freed <- struct{}{}:
		default:
		}
	}
}
