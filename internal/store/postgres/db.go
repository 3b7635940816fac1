package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/packed"
)

const (
	// defaultConns is how many connections a process uses at most, unless the address says
	// pool_max_conns.
	defaultConns = 10
	minConns     = writers + 2
	// poolOption is the name of that in an address.
	poolOption = "pool_max_conns"
)

// The kinds of locks.
const (
	lockSchema int32 = 0x6465636b + iota
	lockMoney
	lockQueue
	lockSandbox
)

// digest is the number of a name in locks and in the index of words. Names that share one wait
// for each other, and nothing worse.
func digest(name string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int32(h.Sum32())
}

// Options may be left at their zero value.
type Options struct {
	// Upkeep compresses old logs, beside other work.
	Upkeep bool
	// Server is the name of a server. Only one server can use the database at a time: if another one does, Open waits for
	// its lease to expire and then fails with ErrInUse. A server that restarts under the same name does not wait. Other
	// commands leave it empty.
	Server string
}

// DB is an open database.
type DB struct {
	pool     *pool
	writer   *writer
	readonly bool
	ids      *ids
	news     queueNews
	recent   *packed.Recent
	known    known
	upkeep   *upkeep      // nil unless it was asked for
	lease    *serverLease // nil unless Options.Server is set

	changes, commits atomic.Int64
	trouble          atomic.Pointer[error] // why the last write was not stored
	probing          atomic.Bool
	background       sync.WaitGroup

	once sync.Once
}

var _ store.Backend = (*DB)(nil)

// parse reads an address. What it returns as an error does not contain the address: it may have a password.
func parse(address string) (*pgconn.Config, int, error) {
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		return nil, 0, errors.New("the address of the database is not valid: it looks like postgres://user@host:5432/database?sslmode=require")
	}
	conns := defaultConns
	if n, ok := config.RuntimeParams[poolOption]; ok {
		delete(config.RuntimeParams, poolOption)
		if conns, err = strconv.Atoi(n); err != nil || conns < minConns {
			return nil, 0, fmt.Errorf("%s must be a number of at least %d", poolOption, minConns)
		}
	}
	if _, named := config.RuntimeParams["application_name"]; !named {
		config.RuntimeParams["application_name"] = "deckhand"
	}
	return config, conns, nil
}

// CheckAddress checks an address without connecting.
func CheckAddress(address string) error {
	_, _, err := parse(address)
	return err
}

// Open connects to a database and brings its schema up to date. A database that can be read but
// not written is opened all the same: see ReadOnly. ErrNewer when a newer version of the program
// has used it.
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	config, conns, err := parse(address)
	if err != nil {
		return nil, err
	}
	db := &DB{pool: newPool(config, conns-writers), news: newQueueNews(), recent: packed.NewRecent(), known: known{rows: map[session.ID]session.Row{}}}
	if err := db.prepare(ctx); err != nil {
		db.pool.close()
		return nil, fmt.Errorf("open the database %s on %s: %w", config.Database, config.Host, explain(err))
	}
	if o.Server != "" && !db.readonly {
		if db.lease, err = acquireLease(ctx, db, o.Server); err != nil {
			db.pool.close()
			return nil, fmt.Errorf("open the database %s on %s: %w", config.Database, config.Host, err)
		}
	}
	db.writer = newWriter(db)
	if o.Upkeep && !db.readonly {
		db.upkeep = newUpkeep(db)
	}
	return db, nil
}

// prepare makes the database one that can be used.
func (db *DB) prepare(ctx context.Context) error {
	c, err := db.pool.get(ctx)
	if err != nil {
		return err
	}
	defer db.pool.put(c)
	_, err = c.one("SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean", func(v []any) { db.readonly = truth(v[0]) })
	if err != nil {
		return err
	}
	if err := migrate(c, db.readonly); err != nil {
		return err
	}
	db.ids, err = openIDs(c, db)
	return err
}

// Close finishes what is queued and closes all connections. It may be called twice.
func (db *DB) Close() error {
	db.once.Do(func() {
		if db.upkeep != nil {
			db.upkeep.close()
		}
		db.writer.close()
		db.background.Wait()
		db.lease.release()
		db.pool.close()
	})
	return nil
}

// ReadOnly says that the database could not be written when it was opened.
func (db *DB) ReadOnly() bool { return db.readonly }

// Ping reads something.
func (db *DB) Ping(ctx context.Context) error {
	return db.read(ctx, func(c *conn) error {
		_, err := c.one("SELECT n FROM deckhand.sessions LIMIT 1", func([]any) {})
		return err
	})
}

// Healthy is nil, or why the database did not store the last write. Asked while there is trouble,
// it has a small write tried, so that the end of it is noticed.
func (db *DB) Healthy() error {
	if db.readonly {
		return ErrReadOnly
	}
	err := db.trouble.Load()
	if err == nil {
		return nil
	}
	if !db.probing.Swap(true) {
		db.background.Go(func() {
			defer db.probing.Store(false)
			ctx, stop := context.WithTimeout(context.Background(), connectTimeout)
			defer stop()
			_ = db.write(ctx, func(c *conn) error {
				_, err := c.exec("INSERT INTO deckhand.counters AS c (name, value) VALUES ('probes', 1) ON CONFLICT (name) DO UPDATE SET value = c.value + 1")
				return err
			})
		})
	}
	return *err
}

// Written implements store.Backend.
func (db *DB) Written() (changes, transactions int64) { return db.changes.Load(), db.commits.Load() }

// ended records how a write ended, and gives its error the name that callers know.
func (db *DB) ended(err error) error {
	db.changes.Add(1)
	var r refusal
	switch {
	case errors.As(err, &r):
		return r.error
	case err != nil:
		err = explain(err)
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

// read lends a connection to do. A connection that turns out to be broken is replaced once: it
// may have broken while nobody used it.
func (db *DB) read(ctx context.Context, do func(*conn) error) error {
	err, old := db.readOnce(ctx, do)
	if old {
		err, _ = db.readOnce(ctx, do)
	}
	return explain(err)
}

func (db *DB) readOnce(ctx context.Context, do func(*conn) error) (err error, old bool) {
	c, err := db.pool.get(ctx)
	if err != nil {
		return err, false
	}
	defer db.pool.put(c)
	err = do(c)
	return err, lost(err) && !c.gave && !c.idle.IsZero() && ctx.Err() == nil
}

// tries is how often a transaction is tried that others are in the way of.
const tries = 5

// write runs do in a transaction, which is durable when it returns nil. do may be run again after
// a rollback. When ctx ends first, the change may or may not be made.
func (db *DB) write(ctx context.Context, do func(*conn) error) error {
	if db.readonly {
		return ErrReadOnly
	}
	if err := db.lease.check(ctx); err != nil {
		return db.ended(err)
	}
	for try := 1; ; try++ {
		err, unbegun := db.transact(ctx, do)
		if try < tries && (again(err) || unbegun) && ctx.Err() == nil {
			continue
		}
		return db.ended(err)
	}
}

// transact runs a transaction. It is unbegun if it failed because a connection had broken while
// nobody used it.
func (db *DB) transact(ctx context.Context, do func(*conn) error) (err error, unbegun bool) {
	c, err := db.pool.get(ctx)
	if err != nil {
		return err, false
	}
	defer db.pool.put(c)
	if err := c.begin(); err != nil {
		return err, c.raw.IsClosed() && !c.idle.IsZero()
	}
	if err := run(c, do); err != nil {
		c.rollback()
		var f failure
		if !errors.As(err, &f) {
			err = refuse(err)
		}
		return err, false
	}
	if err := c.commit(); err != nil {
		return err, false
	}
	db.commits.Add(1)
	db.news.committed(c.fresh)
	return nil, false
}

// run keeps a panic from ending the process with a transaction open.
func run(c *conn, do func(*conn) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v", p)
		}
	}()
	return do(c)
}

// Check looks for sessions whose log does not end where their row says.
func (db *DB) Check(ctx context.Context) error {
	const piece = 10_000
	for n := int64(0); ; {
		seen, broken := 0, ""
		err := db.read(ctx, func(c *conn) error {
			return c.query(`SELECT s.n, s.id, EXISTS (SELECT FROM deckhand.events e WHERE e.n = s.n AND e.last = s.last)
				FROM deckhand.sessions s WHERE s.n > $1 ORDER BY s.n LIMIT $2`, func(v []any) error {
				seen, n = seen+1, number(v[0])
				if !truth(v[2]) && broken == "" {
					broken = text(v[1])
				}
				return nil
			}, n, int64(piece))
		})
		switch {
		case err != nil:
			return err
		case broken != "":
			return fmt.Errorf("the database is damaged: the last event of conversation %s is missing; see deckhand doctor %s, or restore a backup", broken, broken)
		case seen < piece:
			return nil
		}
	}
}

// rest waits as long as the work since begin took, so many times.
func rest(ctx context.Context, begin time.Time, times int) {
	if times == 0 {
		return
	}
	t := time.NewTimer(time.Duration(times) * time.Since(begin))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
