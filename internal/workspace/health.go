package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

const (
	// askEvery is how often a sandbox that is in use is asked, at most.
	askEvery = 5 * time.Second
	// crowded is the share of its processes, of a hundred, from which on a sandbox
	// counts as full of them, and crowdedTimes how often in a row that must be seen.
	crowded      = 98
	crowdedTimes = 2
)

// watchHealth notices that a sandbox does not answer any more, or is full of processes,
// while it is in use, for as long as the connection lasts.
func (k *Keeper) watchHealth(p *place, box *sandbox.Sandbox, h sandbox.Handle, processes int) {
	tick := time.NewTicker(min(askEvery, k.Silence))
	defer tick.Stop()
	full := 0
	for {
		select {
		case <-tick.C:
		case <-box.Done():
			return
		case <-k.ctx.Done():
			return
		}
		k.mu.Lock()
		inUse := p.users > 0 && !p.ending
		k.mu.Unlock()
		if !inUse {
			full = 0
			continue
		}
		var v sandbox.Vitals
		err := sandbox.Answers(k.ctx, k.Silence, func(ctx context.Context) (err error) {
			v, err = box.Vitals(ctx)
			return err
		})
		switch {
		case errors.Is(err, sandbox.ErrSilent):
			k.endSilent(p, h)
			_ = box.Close() // pending calls fail: their answers are lost
			return
		case err == nil && v.Processes*100 >= processes*crowded:
			full++
		default: // also an older runner that does not know the question has answered
			full = 0
		}
		if full >= crowdedTimes {
			full = 0
			k.endCrowded(p, box, processes)
		}
	}
}

// endSilent ends a sandbox whose runner does not answer. It is started again like any
// other that was lost.
func (k *Keeper) endSilent(p *place, h sandbox.Handle) {
	k.Logger.Warn("sandbox does not respond and is stopped", "session", p.id, "after", k.Silence)
	k.note(p.id, session.Noted{ID: lost.ID, Message: fmt.Sprintf("The sandbox did not respond for %s and was restarted. Running processes were lost; the workspace files are kept.", k.Silence)})
	k.mu.Lock()
	p.ended = fmt.Sprintf("The sandbox did not respond for %s and was ended", k.Silence)
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(k.ctx, endTime)
	defer cancel()
	if err := k.Driver.Stop(ctx, h); err != nil && k.ctx.Err() == nil {
		k.Logger.Error("cannot stop a sandbox that does not respond", "session", p.id, "error", err)
	}
}

// endCrowded ends what runs in a sandbox that can start no process any more.
func (k *Keeper) endCrowded(p *place, box *sandbox.Sandbox, processes int) {
	why := fmt.Sprintf("Process limit reached: the sandbox uses all %d processes and threads. All running processes were stopped.", processes)
	k.Logger.Warn("sandbox reached its process limit; its processes were stopped", "session", p.id, "allowed", processes)
	ctx, cancel := context.WithTimeout(k.ctx, endTime)
	defer cancel()
	if err := box.EndAll(ctx, why); err != nil && k.ctx.Err() == nil {
		k.Logger.Debug("cannot stop the processes of a sandbox", "session", p.id, "error", err)
	}
	k.note(p.id, session.Noted{ID: "STATUS$ERROR_PROCESS_LIMIT", Message: why})
}
