//go:build linux

// Package fault has the faults of a torture run, one per file. A fault is injected, lasts
// some time and is repaired before it returns.
package fault

import (
	"context"
	"math/rand/v2"
	"time"

	"deckhand/torture/people"
	"deckhand/torture/world"
)

// Scene is what a fault acts on.
type Scene struct {
	World  *world.World
	Crowd  *people.Crowd
	Random *rand.Rand
	// Long lets some faults last longer than a lease.
	Long bool
}

// leaseTime is after how long a server that is not heard of loses its rights.
const leaseTime = 10 * time.Second

// sometimesLong adds the time of a lease, one time out of n.
func (s *Scene) sometimesLong(d time.Duration, n int) time.Duration {
	if s.Random.IntN(n) == 0 && s.Long {
		return d + leaseTime
	}
	return d
}

// Fault is something that goes wrong.
type Fault struct {
	Name string
	// What is one sentence for the report.
	What string
	// Kills is true if a process is killed.
	Kills bool
	// Weight is how often it is chosen, compared with the others of its lane.
	Weight int
	// Possible is nil for a fault that is always possible.
	Possible func(*world.World) bool
	// Inject makes the fault, and repairs it. The text says what was done; it is empty if there was nothing to break.
	Inject func(context.Context, *Scene) (string, error)
}

// Processes are the faults of processes and disks. They happen one after the other.
var Processes = []Fault{killServer, stopServer, killRunner, stopRunner, killDatabase, stopDatabase, killNATS, stopNATS, tornWAL, fullDisk}

// Surroundings are the faults of everything around the servers. They happen one after the
// other, at the same time as those of processes.
var Surroundings = []Fault{cutDatabase, silentDatabase, cutModel, cutNATS, cutServers, cutEverything, slowModel, brokenModel, overloadedModel, dropClients, jumpClock}

// between returns a random duration.
func (s *Scene) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.Random.Int64N(int64(most-least)))
}

// server chooses a server.
func (s *Scene) server() *world.Server {
	return s.World.Servers[s.Random.IntN(len(s.World.Servers))]
}

// hold waits while a fault lasts.
func hold(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func onSQLite(w *world.World) bool   { return w.Database == nil }
func onPostgres(w *world.World) bool { return w.Database != nil }
