package sqlite

import (
	"context"
	"sync"
)

// readers are the connections for reading: opened when first needed, few, and
// the one used last is used first, so that an idle server holds few caches.
type readers struct {
	open func(context.Context) (*conn, error)
	turn chan struct{}
	mu   sync.Mutex
	idle []*conn
	done bool
}

func newReaders(n int, open func(context.Context) (*conn, error)) *readers {
	return &readers{open: open, turn: make(chan struct{}, n)}
}

// read lends a connection to do. It must be short: others wait for it.
func (r *readers) read(ctx context.Context, do func(*conn) error) error {
	c, err := r.get(ctx)
	if err != nil {
		return err
	}
	defer r.put(c)
	return explain(do(c))
}

func (r *readers) get(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	done := r.done
	var c *conn
	if n := len(r.idle); n > 0 && !done {
		c, r.idle = r.idle[n-1], r.idle[:n-1]
	}
	r.mu.Unlock()
	if c != nil {
		return c, nil
	}
	err := ErrClosed
	if !done {
		c, err = r.open(ctx)
	}
	if err != nil {
		<-r.turn
		return nil, explain(err)
	}
	return c, nil
}

func (r *readers) put(c *conn) {
	r.mu.Lock()
	r.idle = append(r.idle, c)
	r.mu.Unlock()
	<-r.turn
}

// close waits for those who read and closes all connections.
func (r *readers) close() error {
	r.mu.Lock()
	r.done = true
	r.mu.Unlock()
	for range cap(r.turn) {
		r.turn <- struct{}{}
	}
	var first error
	for _, c := range r.idle {
		if err := c.close(); first == nil {
			first = err
		}
	}
	r.idle = nil
	for range cap(r.turn) { // later callers get an error
		<-r.turn
	}
	return first
}
