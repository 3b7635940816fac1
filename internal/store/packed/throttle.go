package packed

import (
	"context"
	"time"
)

// Throttle waits for factor times the duration of the work that started at begin, so that upkeep leaves most of the processor time to requests.
func Throttle(ctx context.Context, begin time.Time, factor int) {
	Wait(ctx, time.Duration(factor)*time.Since(begin))
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
