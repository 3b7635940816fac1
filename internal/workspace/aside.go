package workspace

import (
	"context"
	"errors"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// setAside ends the sandbox of a session that the store does not know and keeps its
// workspace: the database may have been restored from a backup that is older.
func (k *Keeper) setAside(ctx context.Context, h sandbox.Handle) error {
	id := session.ID(h.ID)
	p, leave, err := k.enterLocked(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	// The session may have been made while we waited: a copy gets its session last.
	if _, err := k.Index.Row(ctx, id); !errors.Is(err, session.ErrNotFound) {
		return err
	}
	defer k.forget(p)
	if s, ok := k.Driver.(sandbox.Archiver); ok {
		where, err := s.SetAside(ctx, h)
		if err == nil && where != "" {
			k.Logger.Warn("a workspace belongs to no known conversation and was set aside; was the database restored from an older backup?", "session", id, "moved_to", where)
		}
		return err
	}
	k.mu.Lock()
	known := k.strangers[id]
	k.strangers[id] = true
	k.mu.Unlock()
	if known {
		return nil
	}
	k.Logger.Warn("a workspace belongs to no known conversation and is kept, with its sandbox stopped; was the database restored from an older backup?", "session", id)
	return k.Driver.Stop(ctx, h)
}

// stranger says why a new session cannot use the workspace that has its ID: it was
// there before the session was, and may belong to another person.
func (k *Keeper) stranger(st session.State) error {
	k.mu.Lock()
	known := k.strangers[st.ID]
	k.mu.Unlock()
	if !known || len(st.Handle) > 0 || st.Created.Forked != nil { // another server made the copy
		return nil
	}
	return &sandbox.Unavailable{Reason: "An earlier conversation with this ID, unknown to the server's database, left a workspace. " +
		"Remove it, or start a conversation with another ID."}
}
