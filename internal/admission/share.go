package admission

import (
	"context"
	"time"
)

const (
	// Changes are collected for changesEvery, or for longChangesEvery if more than longQueue conversations wait.
	changesEvery, longChangesEvery = 100 * time.Millisecond, time.Second
	longQueue                      = 200
	// Every aliveEvery, a server sends at least a message without conversations. Every listEvery-th time it sends the complete list, in
	// case a message was lost. New servers get it at once.
	aliveEvery = time.Second
	listEvery  = 5
	// silentTime is after how long without a message a server is not counted.
	silentTime = 5 * time.Second
)

// Share publishes the queue of this server with send until ctx ends, and removes what is known of servers that are silent. most
// returns the maximum number of conversations in a message. Messages of other servers go to Receive.
func (g *Gate) Share(ctx context.Context, send func(Update), most func() int) {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	last := time.Time{}
	for n := 0; ; {
		all, alive := false, false
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.expire(silentTime)
			all, alive = n%listEvery == 0, true
			n++
		case <-g.fleet.changed:
			every := changesEvery
			if g.Waiting() > longQueue {
				every = longChangesEvery
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(every - time.Since(last)):
			}
		}
		last = time.Now()
		updates := g.updates(all, most())
		if len(updates) == 0 && alive {
			g.mu.Lock()
			updates = append(updates, g.heartbeat())
			g.mu.Unlock()
		}
		for _, u := range updates {
			send(u)
		}
	}
}
