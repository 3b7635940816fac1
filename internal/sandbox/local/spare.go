package local

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/tree"
)

// spare is a place with a runner in its namespaces that waits for its configuration, for the
// next new sandbox: half of a start is done in advance. It ends with this process.
type spare struct {
	mu     sync.Mutex
	place  *place
	timer  *time.Timer
	closed bool
	work   sync.WaitGroup
}

// refillAfter keeps the making of a spare out of the way of the start before.
const refillAfter = 10 * time.Millisecond

// spareAnswers is how long a spare may take to become a sandbox. It needs milliseconds, unless it is stopped or hangs.
const spareAnswers = 5 * time.Second

// adopt makes the spare the place of a sandbox that does not exist yet. nil if
// there is none, or if there is something under that name.
func (d *Driver) adopt(id string) *place {
	d.spare.mu.Lock()
	p := d.spare.place
	if p == nil {
		d.spare.mu.Unlock()
		return nil
	}
	dir := filepath.Join(d.dir, id)
	if unix.Renameat2(unix.AT_FDCWD, p.dir, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE) != nil {
		d.spare.mu.Unlock()
		return nil
	}
	d.spare.place = nil
	d.spare.mu.Unlock()
	p.id, p.dir = id, dir
	d.users.rename(p.meta.User, id)
	return p
}

// refillLater makes a spare soon, if there is none.
func (d *Driver) refillLater() {
	d.spare.mu.Lock()
	defer d.spare.mu.Unlock()
	if d.spare.closed || d.spare.place != nil || d.spare.timer != nil {
		return
	}
	d.spare.work.Add(1)
	d.spare.timer = time.AfterFunc(refillAfter, func() {
		defer d.spare.work.Done()
		p := d.makeSpare()
		d.spare.mu.Lock()
		defer d.spare.mu.Unlock()
		d.spare.timer = nil
		if d.spare.closed && p != nil {
			d.dropSpare(p)
			return
		}
		d.spare.place = p
	})
}

// makeSpare is best effort: whatever is wrong shows at the next start.
func (d *Driver) makeSpare() *place {
	ctx := d.base.ctx // ends with the driver
	dir, err := os.MkdirTemp(d.dir, scrapPrefix)
	if err != nil {
		return nil
	}
	p, err := d.openAt(ctx, filepath.Base(dir), dir)
	if err != nil {
		_ = os.Remove(dir)
		return nil
	}
	if err = os.Chmod(dir, 0o711); err == nil {
		err = d.prepare(ctx, p, plan{})
	}
	if err != nil {
		d.users.free(p.meta.User)
		_ = tree.Remove(dir)
		p.close()
		return nil
	}
	return p
}

func (d *Driver) dropSpare(p *place) {
	d.abandon(context.Background(), p)
	d.users.free(p.meta.User)
	if err := tree.Remove(p.dir); err != nil {
		d.log.Warn("a leftover of a sandbox cannot be removed", "error", err)
	}
	p.close()
}

// closeSpare ends the spare and makes no other.
func (d *Driver) closeSpare() {
	d.spare.mu.Lock()
	d.spare.closed = true
	if d.spare.timer != nil && d.spare.timer.Stop() {
		d.spare.work.Done()
	}
	d.spare.mu.Unlock()
	d.spare.work.Wait()
	d.spare.mu.Lock()
	defer d.spare.mu.Unlock()
	if d.spare.place != nil {
		d.dropSpare(d.spare.place)
		d.spare.place = nil
	}
}
