package pg

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// A connection that was not used for this long is checked before it is used again.
	idleCheck = 5 * time.Second
	// maxAge is how long a connection is used: another server behind the same name gets its share.
	maxAge         = time.Hour
	connectTimeout = 10 * time.Second
	CloseTimeout   = 2 * time.Second
)

// pool is a bounded number of connections. They are opened when needed, and the one used last
// is used first.
type pool struct {
	config *pgconn.Config
	turn   chan struct{}

	mu   sync.Mutex
	idle []*Conn
	done bool
	// closing counts connections that are being closed.
	closing sync.WaitGroup
}

func newPool(config *pgconn.Config, n int) *pool {
	return &pool{config: config, turn: make(chan struct{}, n)}
}

// connect opens a connection.
func (p *pool) connect(ctx context.Context) (*Conn, error) {
	ctx, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	raw, err := pgconn.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, failed(err)
	}
	return &Conn{raw: raw, born: time.Now(), fresh: map[string]bool{}}, nil
}

// get lends a connection for as long as ctx lasts.
func (p *pool) get(ctx context.Context) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, done := p.pop()
	err := ErrClosed
	if c == nil && !done {
		c, err = p.connect(ctx)
	}
	if c == nil {
		<-p.turn
		return nil, err
	}
	c.ctx, c.gave = ctx, false
	return c, nil
}

// pop takes an idle connection that works; nil if there is none.
func (p *pool) pop() (c *Conn, done bool) {
	for {
		p.mu.Lock()
		c, done = nil, p.done
		if last := len(p.idle) - 1; last >= 0 && !done {
			c, p.idle = p.idle[last], p.idle[:last]
		}
		p.mu.Unlock()
		if c == nil || !c.Stale() {
			return c, done
		}
		p.end(c)
	}
}

// put takes a connection back.
func (p *pool) put(c *Conn) {
	c.ctx, c.idle = nil, time.Now()
	p.mu.Lock()
	defer func() {
		p.mu.Unlock()
		<-p.turn
	}()
	if c.raw.IsClosed() || c.raw.IsBusy() || c.raw.TxStatus() != 'I' || p.done {
		p.end(c)
		return
	}
	p.idle = append(p.idle, c)
}

// end closes a connection in the background.
func (p *pool) end(c *Conn) {
	p.closing.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), CloseTimeout)
		defer stop()
		_ = c.raw.Close(ctx)
		<-c.raw.CleanupDone()
	})
}

// close closes all connections, and those in use when they are returned.
func (p *pool) close() {
	p.mu.Lock()
	p.done = true
	for _, c := range p.idle {
		p.end(c)
	}
	p.idle = nil
	p.mu.Unlock()
	for range cap(p.turn) { // until none is lent
		p.turn <- struct{}{}
	}
	for range cap(p.turn) {
		<-p.turn
	}
	p.closing.Wait()
}
