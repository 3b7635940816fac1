package sqlite

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
)

const (
	// After so many writes or bytes the write-ahead log is copied into the file.
	checkpointWrites = 1000
	checkpointBytes  = 4 << 20
	// checkpointPages is when the writer does it itself. While it writes without a
	// pause the copy never catches up with it, and only a caught up log begins
	// anew; so now and then it must stop for the little that is left.
	checkpointPages = 8000
)

// checkpointer copies the write-ahead log into the file, beside the writer. If the writer did
// it, as in SQLite's default, all writes would wait until many scattered pages have reached the
// disk.
type checkpointer struct {
	open  func(context.Context) (*conn, error)
	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}
	done  atomic.Int64

	// Touched by the writer's goroutine only.
	writes, bytes int
}

func newCheckpointer(open func(context.Context) (*conn, error)) *checkpointer {
	c := &checkpointer{open: open, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	go c.loop()
	return c
}

// wrote is told of every commit, by the writer.
func (c *checkpointer) wrote(writes, bytes int) {
	c.writes += writes
	c.bytes += bytes
	if c.writes < checkpointWrites && c.bytes < checkpointBytes {
		return
	}
	select {
	case c.wake <- struct{}{}:
		c.writes, c.bytes = 0, 0
	default: // the last one is still under way
	}
}

func (c *checkpointer) close() {
	close(c.stop)
	<-c.ended
}

func (c *checkpointer) loop() {
	defer close(c.ended)
	var own *conn // opened when first needed: most databases are small
	for {
		select {
		case <-c.wake:
		case <-c.stop:
			if own != nil {
				_ = own.close()
			}
			return
		}
		if own == nil {
			var err error
			if own, err = c.open(context.Background()); err != nil {
				own = nil
				continue
			}
		}
		// Its failure loses nothing: the log stays, and is copied later.
		if err := own.query("PRAGMA wal_checkpoint(PASSIVE)", func([]driver.Value) error { return nil }); err == nil {
			c.done.Add(1)
		}
	}
}
