package workspace

import (
	"context"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// since says of a sandbox which calls can only have been sent to it: those recorded after
// its runner was. Nothing is sent to a runner before it is recorded.
func (k *Keeper) since(ctx context.Context, id session.ID, box *sandbox.Sandbox) *sandbox.Sandbox {
	st, ok := k.Sessions.Peek(id)
	if !ok {
		var err error
		if st, err = k.Sessions.Load(ctx, id); err != nil {
			return box
		}
	}
	h, err := k.handle(st)
	if err != nil || !st.Up || h.Boot == "" || h.Boot != box.Info().Boot {
		return box
	}
	return box.Since(st.HandleAt)
}
