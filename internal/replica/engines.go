package replica

import (
	"context"
	"maps"
	"slices"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

const (
	// lookEvery is how often container engines are asked whether they answer. One that does not is left out after missingTime: it may
	// be starting again.
	lookEvery   = 5 * time.Second
	missingTime = 20 * time.Second
	// sayEvery is how often the other servers are told which engines this one reaches, if they stay the same, and saidFor for how long
	// that is believed.
	sayEvery = 10 * time.Minute
	saidFor  = time.Hour
	// firstTime is how long the first announcement may take.
	firstTime = 5 * time.Second
)

// engines are the container engines that this server reaches.
type engines struct {
	sandbox.Sharer                      // nil if the driver uses none
	seen           map[string]time.Time // when each answered last
	said           []string
	at             time.Time // when the others were told
}

// Share tells the other servers which container engines the driver of this one reaches: they leave conversations to it whose sandboxes run
// there.
func (r *Replica) Share(ctx context.Context, d sandbox.Driver) {
	s, ok := d.(sandbox.Sharer)
	if !ok || r.Alone() {
		return
	}
	r.engines = engines{Sharer: s, seen: map[string]time.Time{}}
	ctx, cancel := context.WithTimeout(ctx, firstTime)
	defer cancel()
	r.look(ctx)
}

// announce keeps the others informed until ctx ends.
func (r *Replica) announce(ctx context.Context) error {
	if r.engines.Sharer == nil {
		return nil
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.look(ctx)
		}
	}
}

func (r *Replica) look(ctx context.Context) {
	e, now := &r.engines, time.Now()
	for _, id := range e.Reached(ctx) {
		e.seen[id] = now
	}
	maps.DeleteFunc(e.seen, func(_ string, at time.Time) bool { return now.Sub(at) > missingTime })
	list := slices.Sorted(maps.Keys(e.seen))
	if slices.Equal(list, e.said) && now.Sub(e.at) < sayEvery {
		return
	}
	if err := r.roster.Reach(ctx, r.Member, list, saidFor); err != nil {
		if ctx.Err() == nil {
			r.Logger.Warn("the other servers could not be told which container engines this one reaches", "error", err)
		}
		return
	}
	e.said, e.at = list, now
}

// load loads a conversation.
func (r *Replica) load(ctx context.Context, id session.ID) (session.State, error) {
	return r.sessions.Load(ctx, id)
}
