package pg

import (
	"context"
	"sync"
	"sync/atomic"
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
	// waiting is how many callers wait for a connection.
	waiting atomic.Int64

	mu   sync.Mutex
	idle []*Conn
	done bool
	// closing counts connections that are being closed.
	closing sync.WaitGroup
}

func newPool(config *pgconn.Config, n int) *pool {
	dial(config)
	return &pool{config: config, turn: make(chan struct{}, n)}
}

// connect opens a connection.
func (p *pool) connect(ctx context.Context) (*Conn, error) {
	var raw *pgconn.PgConn
	err := Within(ctx, connectTimeout, func(ctx context.Context) (err error) {
		raw, err = pgconn.ConnectConfig(ctx, p.config)
		return failed(err)
	})
	if err != nil {
		return nil, err
	}
	return &Conn{raw: raw, born: time.Now(), fresh: map[string]bool{}}, nil
}

// get lends a connection for as long as ctx lasts.
func (p *pool) get(ctx context.Context) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
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

// wait waits until the caller may have a connection.
func (p *pool) wait(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	default:
	}
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > maxWaiting {
		return ErrOverloaded
	}
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
		switch {
		case c == nil:
			return nil, done
		case c.ended():
		case c.unresponsive(): // the other connections probably are, too, and each check would take until its timeout
			p.drop()
		default:
			return c, done
		}
		p.end(c)
	}
}

// drop ends all idle connections.
func (p *pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		p.end(c)
	}
	p.idle = nil
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
	p.mu.Unlock()
	p.drop()
	for range cap(p.turn) { // until none is lent
		p.turn <- struct{}{}
	}
	for range cap(p.turn) {
		<-p.turn
	}
	p.closing.Wait()
}
