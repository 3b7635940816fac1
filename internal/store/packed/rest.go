package packed

import (
	"context"
	"time"
)

// Rest waits for a multiple of the time since begin, so that upkeep leaves most of the processor time to others.
func Rest(ctx context.Context, begin time.Time, times int) {
	Wait(ctx, time.Duration(times)*time.Since(begin))
}

// Wait waits for d, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
