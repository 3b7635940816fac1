// Package pool keeps the connections to the helper containers of the docker driver, which keep checkpoints.
package pool

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/lock"
)

const (
	// idleTime is how long an idle helper is kept, and maxAge the maximum age of a helper.
	idleTime = 10 * time.Second
	maxAge   = 10 * time.Minute
	// maxIdle is the maximum number of idle helpers.
	maxIdle = 8
)

// Runner is the runner in a helper.
type Runner = sandbox.CheckpointRunner

// Pool has the recently used helpers by sandbox, and the checkpoints that they listed.
type Pool struct {
	start  func(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error)
	remove func(id string)
	turns  lock.Table // held while a helper is used

	mu     sync.Mutex
	open   map[string]*helper
	lists  map[string]sandbox.Checkpoints
	closed bool
	ending sync.WaitGroup
}

// helper is a connection to a container. The container has a fixed name, and is kept if the server or its runner dies: as long as it
// exists, a restore may be incomplete.
type helper struct {
	box    *sandbox.Sandbox
	runner Runner
	made   time.Time
	uses   int
	timer  *time.Timer
}

// New returns a Pool. start starts the helper container of a sandbox, or connects to an existing one; remove removes it.
func New(start func(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error), remove func(id string)) *Pool {
	return &Pool{start: start, remove: remove, open: map[string]*helper{}, lists: map[string]sandbox.Checkpoints{}}
}

// Has reports whether there is a connection to the helper of a sandbox.
func (p *Pool) Has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[id] != nil
}

// List returns the last known list of a sandbox's checkpoints.
func (p *Pool) List(id string) (sandbox.Checkpoints, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, ok := p.lists[id]
	return list, ok
}

// SetList sets the list that List returns.
func (p *Pool) SetList(id string, list sandbox.Checkpoints) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists[id] = list
}

// With calls do with the helper of a sandbox, one at a time.
func (p *Pool) With(ctx context.Context, h sandbox.Handle, do func(Runner) error) error {
	return p.Alone(ctx, h.ID, func() error {
		k, err := p.connect(ctx, h)
		if err != nil {
			return err
		}
		err = do(k.runner)
		if _, answered := sandbox.Refusal(err); err != nil && !answered {
			p.drop(h.ID, k) // the container may still be working; the next use finds it
			return err
		}
		if list, e := k.runner.List(ctx); e == nil {
			p.SetList(h.ID, list)
		}
		p.rest(h.ID, k)
		return err
	})
}

// Alone calls do while the helper of a sandbox is not in use.
func (p *Pool) Alone(ctx context.Context, id string, do func() error) error {
	release, err := p.turns.Acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

var errClosed = errors.New("the docker driver is closed")

// connect connects to the helper of a sandbox, unless it is already connected.
func (p *Pool) connect(ctx context.Context, h sandbox.Handle) (*helper, error) {
	p.mu.Lock()
	k, closed := p.open[h.ID], p.closed
	if k != nil {
		k.uses++
	}
	p.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if k != nil {
		select {
		case <-k.box.Done():
		default:
			if time.Since(k.made) < maxAge {
				return k, nil
			}
		}
		p.drop(h.ID, k)
	}
	box, err := p.start(ctx, h)
	if err != nil {
		return nil, err
	}
	k = &helper{box: box, runner: box.CheckpointRunner(), made: time.Now()}
	p.mu.Lock()
	p.open[h.ID] = k
	p.mu.Unlock()
	return k, nil
}

// drop closes a connection and keeps the container.
func (p *Pool) drop(id string, k *helper) bool {
	p.mu.Lock()
	mine := p.open[id] == k
	if mine {
		delete(p.open, id)
	}
	p.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
	}
	k.box.Close()
	return mine
}

// rest ends a helper after idleTime, or immediately if too many helpers are idle.
func (p *Pool) rest(id string, k *helper) {
	p.mu.Lock()
	uses, now := k.uses, p.closed || len(p.open) > maxIdle
	if !now {
		k.timer = time.AfterFunc(idleTime, func() { p.endIdle(id, k, uses) })
	}
	p.mu.Unlock()
	if now {
		p.end(id, k)
	}
}

// endIdle ends a helper that was not used since it became idle.
func (p *Pool) endIdle(id string, k *helper, uses int) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.ending.Add(1)
	p.mu.Unlock()
	defer p.ending.Done()
	_ = p.Alone(context.Background(), id, func() error {
		p.mu.Lock()
		unused := k.uses == uses
		p.mu.Unlock()
		if unused {
			p.end(id, k)
		}
		return nil
	})
}

// end closes a connection and removes the container.
func (p *Pool) end(id string, k *helper) {
	if p.drop(id, k) {
		p.remove(id)
	}
}

// Forget drops the helper of a removed sandbox and its list of checkpoints. Call it within Alone.
func (p *Pool) Forget(id string) {
	p.mu.Lock()
	k := p.open[id]
	delete(p.lists, id)
	p.mu.Unlock()
	if k != nil {
		p.drop(id, k)
	}
}

// closeTime is how long Close waits for a helper in use. The next server finds a helper that is left.
const closeTime = 30 * time.Second

// Close ends all helpers.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	left := maps.Clone(p.open)
	p.mu.Unlock()
	p.ending.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var all sync.WaitGroup
	for id, k := range left {
		all.Go(func() { _ = p.Alone(ctx, id, func() error { p.end(id, k); return nil }) })
	}
	all.Wait()
}
