// Package idle stops conversations in which nothing happens for a while.
package idle

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"deckhand/internal/session"
)

// Close stops conversations that have been idle for a while, until ctx ends; 0 is never. A stopped one keeps its history and
// starts again with the next message.
func Close(ctx context.Context, sessions *session.Sessions, index session.Index, after time.Duration, logger *slog.Logger) {
	if after <= 0 {
		return
	}
	tick := time.NewTicker(max(after/10, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for closeSome(ctx, sessions, index, time.Now().Add(-after), logger) {
		}
	}
}

// page is how many idle conversations are closed in one go.
const page = 100

// closeSome closes one page and says whether there may be more.
func closeSome(ctx context.Context, sessions *session.Sessions, index session.Index, before time.Time, logger *slog.Logger) bool {
	ids, err := index.Idle(ctx, before, page)
	if err != nil {
		if ctx.Err() == nil {
			logger.Error("cannot look for idle conversations", "error", err)
		}
		return false
	}
	for _, id := range ids {
		_, err := sessions.Update(ctx, id, func(s session.State) ([]session.Payload, error) {
			if s.Wants() || s.UpdatedAt.After(before) {
				return nil, nil
			}
			return s.Stop("stopped because it was idle")
		})
		if err != nil && !errors.Is(err, session.ErrDeleted) {
			if ctx.Err() == nil {
				logger.Error("cannot close an idle conversation", "session", id, "error", err)
			}
			return false
		}
	}
	return len(ids) == page
}
