// Package gate is a lock that callers can try, wait for or acquire.
package gate

import (
	"context"
	"sync"
	"time"
)

// Gate admits one caller at a time. The zero value is free.
type Gate struct {
	mu   sync.Mutex
	done chan struct{} // closed when the caller inside leaves; nil if the gate is free
}

// Try enters if the gate is free. Call leave once.
func (g *Gate) Try() (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done != nil {
		return nil, false
	}
	g.done = make(chan struct{})
	return g.leave, true
}

// Enter waits until the gate is free, and enters. Call leave once.
func (g *Gate) Enter(ctx context.Context) (leave func(), err error) {
	for {
		if leave, ok := g.Try(); ok {
			return leave, nil
		}
		if err := g.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Wait waits until the caller who is inside has left.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	done := g.done
	g.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitFor is Wait with a time limit.
func (g *Gate) WaitFor(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return g.Wait(ctx)
}

// Busy reports whether a caller is inside.
func (g *Gate) Busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done != nil
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.done)
	g.done = nil
}
