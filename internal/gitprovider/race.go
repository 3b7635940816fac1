package gitprovider

import (
	"context"
	"slices"
	"sync"
	"time"
)

// patience is how long to wait for providers earlier in the order once a later one has
// answered.
const patience = 2 * time.Second

// First asks n providers in parallel and takes the first in order that has a result. It
// does not wait for providers after that one, and only briefly for those before it: one
// that is down must not delay the result. at is -1 if none has it. errs are the errors in
// order, nil for those that were not waited for.
func First[T any](ctx context.Context, n int, ask func(ctx context.Context, i int) (T, error)) (value T, at int, errs []error) {
	type answer struct {
		at    int
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	answers := make(chan answer, n)
	for i := range n {
		wg.Go(func() {
			v, err := ask(ctx, i)
			answers <- answer{i, v, err}
		})
	}
	at, errs = -1, make([]error, n)
	asked := make([]bool, n) // and responded
	var enough <-chan time.Time
	for range n {
		select {
		case a := <-answers:
			asked[a.at], errs[a.at] = true, a.err
			if a.err == nil && (at < 0 || a.at < at) {
				value, at = a.value, a.at
			}
		case <-enough:
			return value, at, errs
		}
		if at >= 0 && !slices.Contains(asked[:at], false) {
			return value, at, errs
		}
		if at >= 0 && enough == nil {
			enough = time.After(patience)
		}
	}
	return value, at, errs
}
