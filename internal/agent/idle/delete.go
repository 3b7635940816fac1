package idle

import (
	"context"
	"log/slog"
	"time"

	"deckhand/internal/config"
	"deckhand/internal/session"
)

// longestPause is between two looks for old conversations, at most.
const longestPause = 6 * time.Hour

// Delete deletes conversations this long after their last event, until ctx ends; 0 is never. remove deletes one,
// unless it has changed since a time or works, and says whether it did.
func Delete(ctx context.Context, index session.Index, age config.Age, remove func(context.Context, session.ID, time.Time) (bool, error), logger *slog.Logger) error {
	after := time.Duration(age)
	if after <= 0 {
		return nil
	}
	logger.Info("conversations are deleted some time after their last event", "after", age.String())
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		deleteOld(ctx, index, time.Now().Add(-after), remove, logger)
		pause.Reset(min(max(after/10, time.Second), longestPause))
	}
}

// deleteOld looks for old conversations once. If one cannot be deleted, it continues with the others.
func deleteOld(ctx context.Context, index session.Index, before time.Time, remove func(context.Context, session.ID, time.Time) (bool, error), logger *slog.Logger) {
	deleted := 0
	for id, err := range index.Unchanged(ctx, before) {
		gone := false
		if err == nil {
			gone, err = remove(ctx, id, before)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && id == "":
			logger.Error("cannot look for old conversations", "error", err)
		case err != nil:
			logger.Error("cannot delete an old conversation", "session", id, "error", err)
		case gone:
			deleted++
		}
	}
	if deleted > 0 {
		logger.Info("deleted old conversations", "number", deleted)
	}
}
