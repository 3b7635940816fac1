package main

import (
	"context"
	"sync"
)

// tasks are goroutines that run as long as the server. If one fails, the server stops.
type tasks struct{ wg sync.WaitGroup }

func (t *tasks) start(run func() error, stop context.CancelCauseFunc) {
	t.wg.Go(func() {
		if err := run(); err != nil {
			stop(err)
		}
	})
}

func (t *tasks) wait() { t.wg.Wait() }
