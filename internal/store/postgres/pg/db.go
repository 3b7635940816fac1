package pg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// The classes of advisory locks.
const (
	LockSchema int32 = 0x6465636b + iota
	LockMoney
	LockQueue
	LockSandbox
)

// DB is a bounded number of connections to a database, and what is known of its health.
type DB struct {
	pool *pool
	// reserve is one more connection, for statements that must not wait behind requests.
	reserve *pool
	Limits  Limits
	// ReadOnly is true if the database cannot be written. It is set before the first use.
	ReadOnly bool
	// MayWrite, if set, is called before each write and can refuse it.
	MayWrite func(context.Context) error
	// Added holds a channel for each queue with new items.
	Added Added

	changes, commits atomic.Int64
	trouble          atomic.Pointer[error] // why the last write was not stored
	probing          atomic.Bool
	// Background counts goroutines that Close waits for.
	Background sync.WaitGroup
}

// New makes a DB with at most conns connections, and one more for Reserved. It does not connect yet.
func New(config *pgconn.Config, conns int) *DB {
	return &DB{pool: newPool(config, conns), reserve: newPool(config, 1), Limits: Limits{Limit, pingLimit}, Added: newAdded()}
}

// Close closes all connections.
func (db *DB) Close() {
	db.Background.Wait()
	db.pool.close()
	db.reserve.close()
}

// Connect opens a connection outside of the pool, and End closes one.
func (db *DB) Connect(ctx context.Context) (*Conn, error) { return db.pool.connect(ctx) }

// End closes a connection in the background.
func (db *DB) End(c *Conn) { db.pool.end(c) }

// Written is how many changes were stored, in how many transactions.
func (db *DB) Written() (changes, transactions int64) { return db.changes.Load(), db.commits.Load() }

// Committed counts a transaction that was committed outside of Update.
func (db *DB) Committed() { db.commits.Add(1) }

// Ended records the outcome of a write and returns the error for the caller.
func (db *DB) Ended(err error) error {
	db.changes.Add(1)
	var r refusal
	switch {
	case errors.As(err, &r):
		return r.error
	case err != nil:
		err = Explain(err)
		if ofDatabase(err) {
			db.trouble.Store(&err)
		}
		return err
	}
	if db.trouble.Load() != nil {
		db.trouble.Store(nil)
	}
	return nil
}

// Healthy is nil, or why the database did not store the last write. While there is trouble, it
// tries a small write in the background, so that the end of the trouble is noticed.
func (db *DB) Healthy() error {
	if db.ReadOnly {
		return ErrReadOnly
	}
	err := db.trouble.Load()
	if err == nil {
		return nil
	}
	if !db.probing.Swap(true) {
		db.Background.Go(func() {
			defer db.probing.Store(false)
			ctx, stop := context.WithTimeout(context.Background(), connectTimeout)
			defer stop()
			_ = db.Update(ctx, func(c *Conn) error {
				_, err := c.Exec("INSERT INTO deckhand.counters AS c (name, value) VALUES ('probes', 1) ON CONFLICT (name) DO UPDATE SET value = c.value + 1")
				return err
			})
		})
	}
	return *err
}

// View lends a connection to do, which only reads. If the connection turns out to be broken, do is
// called again with another one: the connection may have broken while it was idle.
func (db *DB) View(ctx context.Context, do func(*Conn) error) error {
	return view(ctx, db.pool, db.Limits.Call, do)
}

// Reserved is View for leases. They have their own connection, because they would expire while requests hold all others.
func (db *DB) Reserved(ctx context.Context, do func(*Conn) error) error {
	return view(ctx, db.reserve, db.Limits.Call, do)
}

// Ping is View with a short limit, to check that the database responds, even while requests hold all other connections.
func (db *DB) Ping(ctx context.Context, do func(*Conn) error) error {
	return view(ctx, db.reserve, db.Limits.Ping, do)
}

func view(ctx context.Context, p *pool, limit time.Duration, do func(*Conn) error) error {
	return Explain(Within(ctx, limit, func(ctx context.Context) error {
		retry, err := viewOnce(ctx, p, do)
		if retry {
			_, err = viewOnce(ctx, p, do)
		}
		return err
	}))
}

func viewOnce(ctx context.Context, p *pool, do func(*Conn) error) (retry bool, err error) {
	c, err := p.get(ctx)
	if err != nil {
		return false, err
	}
	defer p.put(c)
	err = do(c)
	return Lost(err) && !c.gave && !c.idle.IsZero() && ctx.Err() == nil, err
}

// Tries is how often a transaction is tried that conflicts with others.
const Tries = 5

// Update runs do in a transaction, which is durable when Update returns nil. do may be called again
// after a rollback. When ctx ends first, the change may or may not be made.
func (db *DB) Update(ctx context.Context, do func(*Conn) error) error {
	if db.ReadOnly {
		return ErrReadOnly
	}
	return db.Ended(Within(ctx, db.Limits.Call, func(ctx context.Context) error {
		if db.MayWrite != nil {
			if err := db.MayWrite(ctx); err != nil {
				return err
			}
		}
		for try := 1; ; try++ {
			unbegun, err := db.transact(ctx, do)
			if try < Tries && (Retryable(err) || unbegun) && ctx.Err() == nil {
				continue
			}
			return err
		}
	}))
}

// transact runs a transaction. unbegun is true if an idle connection turned out to be broken.
func (db *DB) transact(ctx context.Context, do func(*Conn) error) (unbegun bool, err error) {
	c, err := db.pool.get(ctx)
	if err != nil {
		return false, err
	}
	defer db.pool.put(c)
	if err := c.begin("BEGIN; " + BeginWrite); err != nil {
		return c.raw.IsClosed() && !c.idle.IsZero(), err
	}
	if err := run(c, do); err != nil {
		c.rollback()
		var f failure
		if !errors.As(err, &f) {
			err = Refuse(err)
		}
		return false, err
	}
	if err := c.commit(); err != nil {
		return false, err
	}
	db.commits.Add(1)
	db.Added.tell(c.fresh)
	return false, nil
}

// run turns a panic of do into an error.
func run(c *Conn, do func(*Conn) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v", p)
		}
	}()
	return do(c)
}

// Transaction runs do in a transaction that begins with a script.
func (c *Conn) Transaction(script string, do func() error) error {
	if err := c.begin(script); err != nil {
		return err
	}
	if err := do(); err != nil {
		c.rollback()
		return err
	}
	return c.commit()
}

// Added holds a channel for each queue, which receives after a commit that made items due.
type Added struct {
	mu       *sync.Mutex
	channels map[string]chan struct{}
}

func newAdded() Added { return Added{mu: &sync.Mutex{}, channels: map[string]chan struct{}{}} }

// Of is the channel of a queue.
func (a Added) Of(queue string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.channels[queue] == nil {
		a.channels[queue] = make(chan struct{}, 1)
	}
	return a.channels[queue]
}

func (a Added) tell(queues map[string]bool) {
	for name := range queues {
		select {
		case a.Of(name) <- struct{}{}:
		default: // the receiver has not looked since the last time
		}
	}
}
