package egress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxWaiting bounds what waits to be written, of all sandboxes together.
	maxWaiting = 8192
	// batchTime is how long an entry waits for others, so that a client that makes
	// a hundred requests costs a few writes.
	batchTime = 100 * time.Millisecond
	// writeTime is how long a ledger may take, and retryTime how long it is left
	// alone when it cannot write.
	writeTime = 30 * time.Second
	retryTime = 2 * time.Second
	// writersAtOnce lets a database commit the entries of several sandboxes together.
	writersAtOnce = 8
)

// recorder writes entries in the background, so that traffic never waits for
// the ledger. When the ledger is too slow for too long, entries are dropped and
// an entry that says how many is written in their place.
type recorder struct {
	ledger Ledger
	log    *slog.Logger
	ctx    context.Context // of all writes
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting map[string][]Entry
	lost    map[string]int
	count   int // waiting, or being written

	writing sync.Mutex // held while entries are between waiting and the ledger
	wake    chan struct{}
	stop    chan struct{}
	ended   chan struct{}
}

func newRecorder(l Ledger, log *slog.Logger) *recorder {
	r := &recorder{
		ledger: l, log: log, waiting: map[string][]Entry{}, lost: map[string]int{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	go r.run()
	return r
}

// add never blocks.
func (r *recorder) add(id string, e Entry) {
	r.mu.Lock()
	if r.count >= maxWaiting {
		r.lost[id]++
	} else {
		r.waiting[id] = append(r.waiting[id], e)
		r.count++
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recorder) run() {
	defer close(r.ended)
	for {
		select {
		case <-r.wake:
		case <-r.stop:
			return
		}
		if !r.pause(batchTime) {
			return
		}
		if err := r.flushAll(r.ctx); err != nil {
			r.log.Error("the egress ledger cannot be written; it is tried again", "error", err)
			if !r.pause(retryTime) {
				return
			}
			select {
			case r.wake <- struct{}{}:
			default:
			}
		}
	}
}

func (r *recorder) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stop:
		return false
	}
}

// close writes the waiting entries, within writeTime. Entries that cannot be written are lost.
func (r *recorder) close() error {
	close(r.stop)
	defer time.AfterFunc(writeTime, r.cancel).Stop()
	<-r.ended
	return r.flushAll(r.ctx)
}

// flushAll writes the entries of all sandboxes.
func (r *recorder) flushAll(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	ids := map[string]bool{}
	for id := range r.waiting {
		ids[id] = true
	}
	for id := range r.lost {
		ids[id] = true
	}
	r.mu.Unlock()
	var (
		all    sync.WaitGroup
		turn   = make(chan struct{}, writersAtOnce)
		mu     sync.Mutex
		failed []error
	)
	for id := range ids {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			if err := r.write(ctx, id); err != nil {
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// flush writes the entries of one sandbox.
func (r *recorder) flush(ctx context.Context, id string) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.write(ctx, id)
}

// write needs the lock writing: a sandbox's entries stay in order because there is only one
// writer at a time.
func (r *recorder) write(ctx context.Context, id string) error {
	r.mu.Lock()
	list, lost := r.waiting[id], r.lost[id]
	delete(r.waiting, id)
	delete(r.lost, id)
	r.mu.Unlock()
	if len(list) == 0 && lost == 0 {
		return nil
	}
	batch := list
	if lost > 0 {
		batch = append(list[:len(list):len(list)], Entry{
			At: time.Now(), Verdict: Failed, Reason: fmt.Sprintf("%d requests are missing here, because they came faster than they could be written down", lost),
		})
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	err := r.ledger.Record(ctx, id, batch)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.lost[id] += lost; r.lost[id] == 0 {
			delete(r.lost, id)
		}
		if len(list) > 0 {
			r.waiting[id] = append(list, r.waiting[id]...)
		}
		return fmt.Errorf("record the way out of %s: %w", id, err)
	}
	r.count -= len(list)
	return nil
}

// forget drops what waits, and what is written.
func (r *recorder) forget(ctx context.Context, id string) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	r.count -= len(r.waiting[id])
	delete(r.waiting, id)
	delete(r.lost, id)
	r.mu.Unlock()
	return r.ledger.Forget(ctx, id)
}
