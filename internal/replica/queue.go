package replica

import (
	"context"
	"encoding/json"

	"deckhand/internal/admission"
)

const (
	// itemSize is an upper bound for the size of a conversation in a message, and itemsMost the maximum number of conversations.
	itemSize  = 400
	itemsMost = 500
)

// shareQueue publishes which conversations run and wait here, and passes what other servers publish to the Gate, until ctx ends.
func (c *Claimer) shareQueue(ctx context.Context) error {
	stop, err := c.receive("queue", c.queueUpdate)
	if err != nil {
		return err
	}
	defer stop()
	c.Gate.Share(ctx, func(u admission.Update) { c.send("queue", u) }, func() int { return min(itemsMost, max(1, c.room()/itemSize)) })
	return nil
}

// queueUpdate handles an update of the queue of another server.
func (c *Claimer) queueUpdate(data []byte) {
	var u admission.Update
	if json.Unmarshal(data, &u) != nil {
		return
	}
	c.Gate.Receive(u)
	if u.Slots <= 0 {
		return
	}
	c.loads.setFree(u.From, u.Free, u.Kept)
	if u.Free+u.Kept > 0 && c.Gate.Waiting() > 0 {
		select {
		case c.freed <- struct{}{}:
		default:
		}
	}
}
