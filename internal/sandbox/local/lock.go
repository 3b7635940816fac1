package local

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock lets one at a time work on a sandbox.
type lock struct {
	held  chan struct{}
	users int
}

// acquire waits for the lock on the sandbox within this process.
func (d *Driver) acquire(ctx context.Context, id string) (release func(), err error) {
	d.mu.Lock()
	l := d.locks[id]
	if l == nil {
		l = &lock{held: make(chan struct{}, 1)}
		d.locks[id] = l
	}
	l.users++
	d.mu.Unlock()
	forget := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(d.locks, id)
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

// flock waits until no other process, such as a server that is being replaced,
// works on the folder. The lock ends with the descriptor.
func flock(ctx context.Context, folder *os.File) error {
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
