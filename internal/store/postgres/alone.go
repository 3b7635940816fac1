package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrTaken says that another server uses the database.
var ErrTaken = errors.New("another server uses this database: stop it first, or give this one a database of its own")

// A server has the database for itself as long as it says so in time.
const (
	aloneFor   = 10 * time.Second
	aloneEvery = 3 * time.Second
	// alonePatience is how long a server that starts waits for another: one that was killed is
	// gone by then.
	alonePatience = aloneFor + 2*time.Second
	aloneLook     = 250 * time.Millisecond
)

// alone keeps other servers away. It is a row and not a lock, because a lock would belong to a
// connection.
type alone struct {
	db      *DB
	holder  string
	renewed atomic.Int64 // the time since begin of the last success
	begin   time.Time
	lost    atomic.Bool
	stop    context.CancelFunc
	ended   chan struct{}
}

// takeAlone waits until no other server has the database.
func takeAlone(ctx context.Context, db *DB, name string) (*alone, error) {
	a := &alone{db: db, holder: name, begin: time.Now(), ended: make(chan struct{})}
	for {
		taken, err := a.renew(ctx)
		switch {
		case err != nil:
			return nil, err
		case taken:
			ctx, stop := context.WithCancel(context.Background())
			a.stop = stop
			go a.loop(ctx)
			return a, nil
		case time.Since(a.begin) > alonePatience:
			return nil, ErrTaken
		}
		select {
		case <-time.After(aloneLook):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// renew takes the database, or says that it still has it. It is false if another has it.
func (a *alone) renew(ctx context.Context) (taken bool, err error) {
	at := time.Since(a.begin)
	err = a.db.read(ctx, func(c *conn) error {
		taken, err = c.one(`INSERT INTO deckhand.alone AS a (one, holder, ends) VALUES (true, $1, clock_timestamp() + $2::bigint * interval '1 millisecond')
			ON CONFLICT (one) DO UPDATE SET holder = excluded.holder, ends = excluded.ends WHERE a.holder = excluded.holder OR a.ends < clock_timestamp()
			RETURNING true`, func([]any) {}, a.holder, aloneFor.Milliseconds())
		return err
	})
	if err == nil && taken {
		a.renewed.Store(int64(at))
	}
	return taken, err
}

// holds refuses to write when another server has the database. After a pause it asks before it believes that it still has it.
func (a *alone) holds(ctx context.Context) error {
	if a == nil {
		return nil
	}
	if a.lost.Load() {
		return refuse(ErrTaken)
	}
	if time.Since(a.begin)-time.Duration(a.renewed.Load()) < aloneFor-aloneEvery {
		return nil
	}
	taken, err := a.renew(ctx)
	if err != nil {
		return fmt.Errorf("renew the right to use the database: %w", err)
	}
	if !taken {
		a.lost.Store(true)
		return refuse(ErrTaken)
	}
	return nil
}

func (a *alone) loop(ctx context.Context) {
	defer close(a.ended)
	tick := time.NewTicker(aloneEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			ctx, stop := context.WithTimeout(ctx, aloneEvery)
			if taken, err := a.renew(ctx); err == nil && !taken {
				a.lost.Store(true)
			}
			stop()
		}
	}
}

// close gives the database back.
func (a *alone) close() {
	if a == nil {
		return
	}
	a.stop()
	<-a.ended
	ctx, stop := context.WithTimeout(context.Background(), closeTimeout)
	defer stop()
	_ = a.db.read(ctx, func(c *conn) error {
		_, err := c.exec("DELETE FROM deckhand.alone WHERE holder = $1", a.holder)
		return err
	})
}
