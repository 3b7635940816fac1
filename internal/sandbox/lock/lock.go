// Package lock lets one at a time work on a sandbox, in this process and beyond it.
package lock

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Table has a lock for each sandbox that is worked on in this process.
type Table struct {
	mu    sync.Mutex
	locks map[string]*lock
}

type lock struct {
	held  chan struct{}
	users int
}

// Acquire waits for the lock on a sandbox.
func (t *Table) Acquire(ctx context.Context, id string) (release func(), err error) {
	t.mu.Lock()
	l := t.locks[id]
	if l == nil {
		l = &lock{held: make(chan struct{}, 1)}
		if t.locks == nil {
			t.locks = map[string]*lock{}
		}
		t.locks[id] = l
	}
	l.users++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.locks, id)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}

// Folder waits until no other process, such as a server that is being replaced,
// works on the folder. The lock ends with the descriptor.
func Folder(ctx context.Context, folder *os.File) error {
	for {
		err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
