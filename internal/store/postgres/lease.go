package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"deckhand/internal/store/postgres/pg"
)

// ErrInUse means that another server uses the database.
var ErrInUse = errors.New("another server uses this database: stop it first, or use another database; to run several servers together, start all of them with --nats-url")

const (
	// A server lease expires after leaseDuration and is renewed every leaseInterval.
	leaseDuration = 10 * time.Second
	leaseInterval = 3 * time.Second
	// leaseWait is how long Open waits for the lease of another server to expire. A server that
	// was killed does not renew its lease.
	leaseWait = leaseDuration + 2*time.Second
	leasePoll = 250 * time.Millisecond
)

// together is the name under which servers hold the lease that use the database at the same time.
const together = "servers with --nats-url"

// serverLease keeps other servers from using the database. The lease is a row because an advisory
// lock would belong to a connection, which does not work with a transaction pooler.
type serverLease struct {
	db      *pg.DB
	server  string
	start   time.Time
	renewed atomic.Int64 // time of the last renewal, in nanoseconds after start
	lost    atomic.Bool
	stop    context.CancelFunc
	stopped chan struct{}
}

// acquireLease waits for the lease, at most leaseWait, and then renews it in the background.
func acquireLease(ctx context.Context, db *pg.DB, server string) (*serverLease, error) {
	l := &serverLease{db: db, server: server, start: time.Now(), stopped: make(chan struct{})}
	for {
		held, err := l.renew(ctx)
		switch {
		case err != nil:
			return nil, err
		case held:
			ctx, stop := context.WithCancel(context.Background())
			l.stop = stop
			go l.loop(ctx)
			return l, nil
		case time.Since(l.start) > leaseWait:
			return nil, ErrInUse
		}
		select {
		case <-time.After(leasePoll):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// renew acquires or renews the lease. It returns false if another server holds it.
func (l *serverLease) renew(ctx context.Context) (held bool, err error) {
	at := time.Since(l.start)
	err = l.db.Reserved(ctx, func(c *pg.Conn) error {
		held, err = c.One(`INSERT INTO deckhand.server_lease AS l (one, server, expires) VALUES (true, $1, clock_timestamp() + $2::bigint * interval '1 millisecond')
			ON CONFLICT (one) DO UPDATE SET server = excluded.server, expires = excluded.expires WHERE l.server = excluded.server OR l.expires < clock_timestamp()
			RETURNING true`, func([]any) {}, l.server, leaseDuration.Milliseconds())
		return err
	})
	if err == nil && held {
		l.renewed.Store(int64(at))
	}
	return held, err
}

// check returns an error if this server does not hold the lease. If the last renewal was too long
// ago, for example because the process was suspended, it renews the lease first.
func (l *serverLease) check(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if l.lost.Load() {
		return pg.Refuse(ErrInUse)
	}
	if time.Since(l.start)-time.Duration(l.renewed.Load()) < leaseDuration-leaseInterval {
		return nil
	}
	var held bool
	if err := pg.Within(ctx, leaseInterval, func(ctx context.Context) (err error) {
		held, err = l.renew(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("renew the server lease: %w", err)
	}
	if !held {
		l.lost.Store(true)
		return pg.Refuse(ErrInUse)
	}
	return nil
}

// loop renews the lease until ctx ends.
func (l *serverLease) loop(ctx context.Context) {
	defer close(l.stopped)
	tick := time.NewTicker(leaseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			ctx, stop := context.WithTimeout(ctx, leaseInterval)
			if held, err := l.renew(ctx); err == nil && !held {
				l.lost.Store(true)
			}
			stop()
		}
	}
}

// release ends the lease, so that another server can start at once.
func (l *serverLease) release() {
	if l == nil {
		return
	}
	l.stop()
	<-l.stopped
	if l.server == together { // others may still hold it
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), pg.CloseTimeout)
	defer stop()
	_ = l.db.Reserved(ctx, func(c *pg.Conn) error {
		_, err := c.Exec("DELETE FROM deckhand.server_lease WHERE server = $1", l.server)
		return err
	})
}

// UpdateExclusive runs do in a transaction. It fails if another server has a lease, and none gets one until the transaction ends.
func (db *DB) UpdateExclusive(ctx context.Context, do func(*pg.Conn) error) error {
	own := ""
	if db.lease != nil {
		own = db.lease.server
	}
	return db.base.Update(ctx, func(c *pg.Conn) error {
		if err := c.Script("LOCK TABLE deckhand.server_lease, deckhand.members IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		used, err := c.One(`SELECT true FROM deckhand.server_lease WHERE server <> $1 AND expires > clock_timestamp()
			UNION ALL SELECT true FROM deckhand.members WHERE expires > clock_timestamp()`, func([]any) {}, own)
		switch {
		case err != nil:
			return err
		case used:
			return ErrInUse
		}
		return do(c)
	})
}
