package idempotency

import (
	"context"
	"log/slog"
	"time"
)

// Expire deletes responses older than KeptFor, now and every hour, until ctx ends.
func Expire(ctx context.Context, store Store, log *slog.Logger) error {
	hour := time.NewTicker(time.Hour)
	defer hour.Stop()
	for {
		if err := store.DropAnswers(ctx, time.Now().Add(-KeptFor)); err != nil && ctx.Err() == nil {
			log.Warn("cannot delete old idempotency records", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-hour.C:
		}
	}
}
