package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/cluster"
	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/members"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/records"
	"deckhand/internal/store/postgres/refusal"
)

const (
	// defaultConns is the maximum number of connections, unless the address sets poolOption.
	defaultConns = 10
	minConns     = writers + 2
	poolOption   = "pool_max_conns"
)

// Options may be left at their zero value.
type Options struct {
	// Upkeep compresses old logs in the background.
	Upkeep bool
	// Server is the name of a server. Only one server can use the database at a time: if another one does, Open waits for
	// its lease to expire and then fails with ErrInUse. A server that restarts under the same name does not wait. Other
	// commands leave it empty.
	Server string
	// Existing refuses a database without a schema or with an old one, instead of bringing it up to date.
	Existing bool
	// Together lets servers use the database at the same time that all set it. Server is "" then.
	Together bool
	// Bulk is for commands that read or write a lot at once: their transactions may take an hour.
	Bulk bool
	// Flag is the flag that errors name, with the address or a file that contains it. Default: --database-url.
	Flag string
}

// bulkLimit is how long a migration, or a transaction with Options.Bulk, may take.
const bulkLimit = time.Hour

// DB is an open database.
type DB struct {
	*records.Store
	base   *pg.DB
	writer *writer
	ids    *ids
	recent *packed.Recent
	chain  packed.Chain
	known  known
	upkeep *upkeep      // nil unless Options.Upkeep is set
	lease  *serverLease // nil unless Options.Server is set

	once sync.Once
}

var _ store.Backend = (*DB)(nil)

// parse reads an address. Its errors do not contain the address, which may include a password.
func parse(address string) (*pgconn.Config, int, error) {
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		return nil, 0, errors.New("the database URL is not valid; it looks like postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full")
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

// Open connects to a database and brings its schema up to date. A database that can be read but
// not written is opened as well: see ReadOnly. ErrNewer if a newer version of the program has
// used it.
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	o.Flag = cmp.Or(o.Flag, "--database-url")
	config, conns, err := parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Flag, err)
	}
	base := pg.New(config, conns-writers-1)
	call := base.Limits.Call
	base.Limits.Call = bulkLimit // for migrations
	db := &DB{Store: &records.Store{DB: base}, base: base, recent: packed.NewRecent(), known: known{rows: map[session.ID]session.Row{}}}
	err = base.View(ctx, func(c *pg.Conn) error { return db.prepare(c, o.Existing) })
	if !o.Bulk {
		base.Limits.Call = call
	}
	if o.Together {
		o.Server = together
	}
	if err == nil && o.Server != "" && !base.ReadOnly {
		if db.lease, err = acquireLease(ctx, base, o.Server); err == nil {
			base.MayWrite = db.lease.check
		}
	}
	if err != nil {
		base.Close()
		return nil, fmt.Errorf("open the database %s on %s: %w", config.Database, config.Host, refusal.Explain(config, o.Flag, err))
	}
	db.writer = newWriter(db)
	if o.Upkeep && !base.ReadOnly {
		db.upkeep = newUpkeep(db)
	}
	return db, nil
}

// prepare migrates the database and reads what is needed from the start.
func (db *DB) prepare(c *pg.Conn, existing bool) error {
	_, err := c.One("SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean", func(v []any) { db.base.ReadOnly = pg.Truth(v[0]) })
	if err != nil {
		return err
	}
	if err := migrate(c, db.base.ReadOnly, existing); err != nil {
		return err
	}
	db.ids, err = openIDs(c, db.base)
	return err
}

// Close stores what is queued and closes all connections. It may be called twice.
func (db *DB) Close() error {
	db.once.Do(func() {
		if db.upkeep != nil {
			db.upkeep.close()
		}
		db.writer.close()
		db.lease.release()
		db.base.Close()
	})
	return nil
}

// Base returns the connections, for the packages in this folder.
func (db *DB) Base() *pg.DB { return db.base }

// ReadOnly reports that the database could not be written when it was opened.
func (db *DB) ReadOnly() bool { return db.base.ReadOnly }

// Healthy implements store.Backend.
func (db *DB) Healthy() error { return db.base.Healthy() }

// Written implements store.Backend.
func (db *DB) Written() (changes, transactions int64) { return db.base.Written() }

// Ping reads a row.
func (db *DB) Ping(ctx context.Context) error {
	return db.base.Ping(ctx, func(c *pg.Conn) error {
		_, err := c.One("SELECT n FROM deckhand.sessions LIMIT 1", func([]any) {})
		return err
	})
}

// Version implements store.Backend.
func (db *DB) Version(ctx context.Context) (version string, err error) {
	err = db.base.View(ctx, func(c *pg.Conn) error {
		_, err := c.One("SELECT current_setting('server_version')", func(v []any) { version = "PostgreSQL " + pg.Text(v[0]) })
		return err
	})
	return version, err
}

// missingEvent is the ID of a session whose last event is missing.
type missingEvent string

func (m missingEvent) Error() string {
	return fmt.Sprintf("the database is damaged: the last event of conversation %s is missing", string(m))
}

// DamagedConversation returns the ID. By this method, the doctor recognizes that the rest of the database can be read.
func (m missingEvent) DamagedConversation() string { return string(m) }

// Check looks for sessions whose log does not end with the event that their row names.
func (db *DB) Check(ctx context.Context) error {
	const piece = 10_000
	for n := int64(0); ; {
		seen, broken := 0, ""
		err := db.base.View(ctx, func(c *pg.Conn) error {
			return c.Query(`SELECT s.n, s.id, EXISTS (SELECT FROM deckhand.events e WHERE e.n = s.n AND e.last = s.last)
				FROM deckhand.sessions s WHERE s.n > $1 ORDER BY s.n LIMIT $2`, func(v []any) error {
				seen, n = seen+1, pg.Number(v[0])
				if !pg.Truth(v[2]) && broken == "" {
					broken = pg.Text(v[1])
				}
				return nil
			}, n, int64(piece))
		})
		switch {
		case err != nil:
			return err
		case broken != "":
			return missingEvent(broken)
		case seen < piece:
			return nil
		}
	}
}

// Leases are those of servers that use the database together. self describes the one that asks.
func (db *DB) Leases(self cluster.Info) cluster.Roster {
	return &members.Leases{DB: db.base, Self: self}
}
