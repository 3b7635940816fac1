// Package pool keeps the connections to the helper containers of the docker driver, which keep checkpoints.
package pool

import (
	"context"
	"crypto/rand"
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
	start  func(ctx context.Context, h sandbox.Handle) (box *sandbox.Sandbox, container string, err error)
	remove func(container string)
	name   string          // of this server in helpers
	turns  lock.Table      // held while a helper is used
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	open   map[string]*helper
	lists  map[string]list
	closed bool
	ending sync.WaitGroup
}

// list has the checkpoints of a sandbox.
type list struct {
	sandbox.Checkpoints
	// empty is the last time at which the workspace was seen to be empty without its helper; zero if it was not.
	empty time.Time
}

// helper is a connection to a container. The container has a fixed name, and is kept if the server or its runner dies: as long as it
// exists, a restore may be incomplete.
type helper struct {
	box       *sandbox.Sandbox
	container string
	runner    Runner
	made      time.Time
	uses      int
	timer     *time.Timer
}

// New returns a Pool. start starts the helper container of a sandbox, or connects to an existing one; remove removes a container.
func New(start func(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, string, error), remove func(container string)) *Pool {
	p := &Pool{start: start, remove: remove, name: rand.Text(), open: map[string]*helper{}, lists: map[string]list{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
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
	l, ok := p.lists[id]
	return l.Checkpoints, ok
}

// SetEmpty records that a workspace was empty at a time, and that its only checkpoint is 1, which has no files. The helper is told
// at its next use, before it does anything else.
func (p *Pool) SetEmpty(id string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists[id] = list{Checkpoints: sandbox.Checkpoints{Numbers: []int{1}}, empty: at}
}

// With calls do with the helper of a sandbox, one at a time.
func (p *Pool) With(ctx context.Context, h sandbox.Handle, do func(Runner) error) error {
	return p.Alone(ctx, h.ID, func() error {
		k, err := p.use(ctx, h)
		if err != nil {
			return err
		}
		if err = p.begin(ctx, h.ID, k); err == nil {
			err = do(k.runner)
		}
		if _, answered := sandbox.Refusal(err); err != nil && !answered {
			p.drop(h.ID, k) // the container may still be working; the next use finds it
			return err
		}
		if got, e := k.runner.List(ctx); e == nil {
			p.mu.Lock()
			p.lists[h.ID] = list{Checkpoints: got, empty: p.lists[h.ID].empty}
			p.mu.Unlock()
		}
		p.rest(h.ID, k)
		return err
	})
}

// begin tells a helper until when the workspace was empty. A helper that knows of a later time ignores it.
func (p *Pool) begin(ctx context.Context, id string, k *helper) error {
	p.mu.Lock()
	at := p.lists[id].empty
	p.mu.Unlock()
	if at.IsZero() {
		return nil
	}
	return k.runner.Begin(ctx, sandbox.BeginParams{Empty: true, At: at})
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

// use connects to the helper of a sandbox, and replaces a helper that another server is about to remove.
func (p *Pool) use(ctx context.Context, h sandbox.Handle) (*helper, error) {
	for again := false; ; again = true {
		k, err := p.connect(ctx, h)
		if err != nil {
			return nil, err
		}
		if err = k.runner.Use(ctx, p.name); err == nil {
			return k, nil
		}
		p.drop(h.ID, k)
		if again || !errors.Is(err, sandbox.ErrBusy) {
			return nil, err
		}
		p.remove(k.container)
	}
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
	box, container, err := p.start(ctx, h)
	if err != nil {
		return nil, err
	}
	k = &helper{box: box, container: container, runner: box.CheckpointRunner(), made: time.Now()}
	p.mu.Lock()
	p.open[h.ID] = k
	p.mu.Unlock()
	return k, nil
}

// drop closes a connection and keeps the container.
func (p *Pool) drop(id string, k *helper) {
	p.take(id, k)
	k.box.Close()
}

// take forgets a connection. It reports false if it was forgotten before.
func (p *Pool) take(id string, k *helper) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
	}
	mine := p.open[id] == k
	if mine {
		delete(p.open, id)
	}
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
	_ = p.Alone(p.ctx, id, func() error {
		p.mu.Lock()
		unused := k.uses == uses
		p.mu.Unlock()
		if unused {
			p.end(id, k)
		}
		return nil
	})
}

// releaseTime is how long a helper may take to answer that it is not in use.
const releaseTime = 10 * time.Second

// end closes a connection and removes the container, unless another server has used it since. A container without a connection is kept,
// like one of a server that died.
func (p *Pool) end(id string, k *helper) {
	defer k.box.Close()
	if !p.take(id, k) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	if last, err := k.runner.Release(ctx, p.name); err == nil && last {
		p.remove(k.container)
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
	p.cancel()
	p.ending.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var all sync.WaitGroup
	for id, k := range left {
		all.Go(func() { _ = p.Alone(ctx, id, func() error { p.end(id, k); return nil }) })
	}
	all.Wait()
}
