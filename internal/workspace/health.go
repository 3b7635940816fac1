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
	// askFirst is how soon it is asked first, whether it is in use or not: it learns its
	// limit with that.
	askFirst = 200 * time.Millisecond
)

// watchHealth notices that a sandbox does not answer any more while it is in use, and that its
// runner ended processes at their limit, for as long as the connection lasts.
func (k *Keeper) watchHealth(p *place, box *sandbox.Sandbox, h sandbox.Handle, processes int) {
	timer := time.NewTimer(askFirst)
	defer timer.Stop()
	for first := true; ; first = false {
		select {
		case <-timer.C:
		case <-box.Done():
			return
		case <-k.ctx.Done():
			return
		}
		timer.Reset(min(askEvery, k.Silence))
		k.mu.Lock()
		inUse := p.users > 0 && !p.ending
		k.mu.Unlock()
		if !inUse && !first {
			continue
		}
		var v sandbox.Vitals
		err := sandbox.Answers(k.ctx, k.Silence, func(ctx context.Context) (err error) {
			v, err = box.Vitals(ctx, processes)
			return err
		})
		if errors.Is(err, sandbox.ErrSilent) {
			k.endSilent(p, h)
			_ = box.Close() // pending calls fail: their answers are lost
			return
		}
		if v.Ended != "" {
			k.Logger.Warn("sandbox stayed at its process limit; processes were ended", "session", p.id, "allowed", processes)
			k.note(p.id, session.Noted{ID: "STATUS$ERROR_PROCESS_LIMIT", Message: v.Ended})
		}
	}
}

// endSilent ends a sandbox whose runner does not answer. It is started again like any
// other that was lost.
func (k *Keeper) endSilent(p *place, h sandbox.Handle) {
	if st, err := k.Sessions.Load(k.ctx, p.id); err != nil || k.Here(st) != nil {
		return // another server uses it, and does not wait for us
	}
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
