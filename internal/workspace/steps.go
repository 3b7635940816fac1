package workspace

import (
	"context"
	"errors"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace/progress"
)

// steps records the progress of one start.
func (k *Keeper) steps(id session.ID) *progress.Steps {
	return progress.New(func(p sandbox.Progress) {
		_, err := k.Sessions.Update(k.ctx, id, func(st session.State) ([]session.Payload, error) {
			if st.Claim == 0 || st.Stopped || st.Failed {
				return nil, nil
			}
			return st.Progressed(st.Claim, session.WorkspaceStep{Step: string(p.Step), Message: p.Message})
		})
		if err != nil && k.ctx.Err() == nil && !errors.Is(err, session.ErrRefused) && !errors.Is(err, session.ErrDeleted) {
			k.Logger.Error("cannot record the progress of a start", "session", id, "error", err)
		}
	})
}

// clearStep takes back that a sandbox is being started, when it could not be: a
// session that did not wait for it goes on as it was.
func (k *Keeper) clearStep(id session.ID) {
	_, err := k.Sessions.Update(k.ctx, id, func(s session.State) ([]session.Payload, error) {
		if s.Claim == 0 || !s.Ready || s.Step == "" {
			return nil, nil
		}
		return []session.Payload{session.WorkspaceReady{}}, nil
	})
	if err != nil && k.ctx.Err() == nil {
		k.Logger.Debug("cannot record the end of a start", "session", id, "error", err)
	}
}

// maxCleared is how many sessions clearSteps looks at.
const maxCleared = 100_000

// clearSteps clears the start progress of sessions without a loop: the server that was starting
// the sandbox has ended. Other sessions are taken up by a loop, which does the same.
func (k *Keeper) clearSteps(ctx context.Context) {
	ids, err := k.Index.Idle(ctx, time.Now(), maxCleared)
	if err != nil {
		if ctx.Err() == nil {
			k.Logger.Error("cannot look for unfinished starts", "error", err)
		}
		return
	}
	for _, id := range ids {
		row, err := k.Index.Row(ctx, id)
		k.mu.Lock()
		used := k.places[id] != nil
		k.mu.Unlock()
		if err == nil && row.Step != "" && !used {
			k.clearStep(id)
		}
	}
}
