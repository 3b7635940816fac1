package postgres

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
)

const (
	// Logs that have not grown for this long are compressed.
	coldAfter = 7 * 24 * time.Hour
	// A compressed row holds about this many bytes of events.
	coldBytes = 64 << 10
	// Between looks for such logs.
	coldEvery = 6 * time.Hour
	// throttleFactor is how many times longer upkeep pauses than it works.
	throttleFactor = 9
	// unthrottled is how many logs are compressed at the same time without pauses.
	unthrottled = 4
)

// upkeep is the goroutine that compresses old logs. Its work can be repeated, and done by several
// processes at once.
type upkeep struct {
	db    *DB
	stop  context.CancelFunc
	ended chan struct{}
}

func newUpkeep(db *DB) *upkeep {
	ctx, stop := context.WithCancel(context.Background())
	u := &upkeep{db: db, stop: stop, ended: make(chan struct{})}
	go u.loop(ctx)
	return u
}

func (u *upkeep) close() {
	u.stop()
	<-u.ended
}

// loop starts with a round, because a server that is restarted often would never reach a later one.
func (u *upkeep) loop(ctx context.Context) {
	defer close(u.ended)
	for ctx.Err() == nil { // failures are retried in the next round
		_ = u.db.compress(ctx, time.Now().Add(-coldAfter), throttleFactor)
		packed.Wait(ctx, coldEvery)
	}
}

// Tend does all upkeep at once: it compresses the logs that have not grown since a time. A
// database that is open with Upkeep does so by itself.
func (db *DB) Tend(ctx context.Context, before time.Time) error { return db.compress(ctx, before, 0) }

// cold is a session whose log can be compressed from one event to another.
type cold struct{ n, from, to int64 }

// compress compresses the logs that were written last before a time. If one cannot be compressed, it continues with the
// others.
func (db *DB) compress(ctx context.Context, before time.Time, factor int) (failed error) {
	const piece = 1024
	for n, seen := int64(0), piece; seen == piece; {
		begin := time.Now()
		var logs []cold
		err := db.base.View(ctx, func(c *pg.Conn) error {
			logs, seen = nil, 0
			return c.Query(`SELECT n, compressed, last, updated_at < $2 AND compressed < last AND NOT deleted FROM deckhand.sessions WHERE n > $1
				ORDER BY n LIMIT $3`, func(v []any) error {
				if seen, n = seen+1, pg.Number(v[0]); pg.Truth(v[3]) {
					logs = append(logs, cold{n, pg.Number(v[1]), pg.Number(v[2])})
				}
				return nil
			}, n, pg.Micros(before), int64(piece))
		})
		if err != nil {
			return err
		}
		packed.Throttle(ctx, begin, factor)
		workers := 1
		if factor == 0 {
			workers = unthrottled
		}
		errs := make([]error, workers)
		var group sync.WaitGroup
		for i := range workers {
			group.Go(func() {
				for at := i; at < len(logs) && !hopeless(ctx, errs[i]); at += workers {
					begin := time.Now()
					if err := db.compressLog(ctx, logs[at]); errs[i] == nil || hopeless(ctx, err) {
						errs[i] = err
					}
					packed.Throttle(ctx, begin, factor)
				}
			})
		}
		group.Wait()
		for _, err := range errs {
			if failed = cmp.Or(failed, err); hopeless(ctx, err) {
				return err
			}
		}
	}
	return failed
}

// hopeless reports whether other logs cannot be compressed either after an error.
func hopeless(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || pg.Refuses(err))
}

func (db *DB) compressLog(ctx context.Context, l cold) (err error) {
	for l.from < l.to && err == nil {
		err = db.compressNext(ctx, &l)
	}
	return err
}

// errMeanwhile means that the rows have changed since they were read.
var errMeanwhile = errors.New("the log has changed")

// compressNext puts the next rows of a log into one. They are read and compressed outside of the
// transaction that replaces them.
func (db *DB) compressNext(ctx context.Context, l *cold) error {
	var p packed.Joined
	last := l.to
	err := db.base.View(ctx, func(c *pg.Conn) error {
		return c.Query("SELECT last, at, body FROM deckhand.events WHERE n = $1 AND last > $2 AND last <= $3 ORDER BY last LIMIT 512", func(v []any) error {
			if err := p.Add(pg.Number(v[1]), pg.Bytes(v[2])); err != nil {
				return err
			}
			if last = pg.Number(v[0]); len(p.Body) >= coldBytes {
				return pg.Enough
			}
			return nil
		}, l.n, l.from, l.to)
	})
	if errors.Is(err, packed.ErrCut) { // the doctor needs a damaged log as it is
		l.from = l.to
		return nil
	}
	if err != nil {
		return err
	}
	first := l.from
	l.from = last
	if p.Rows == 0 {
		return nil
	}
	body := p.Row()
	err = db.base.Update(ctx, func(c *pg.Conn) error {
		// If a crash undoes this, the rows are as they were.
		if _, err := c.Exec("SET LOCAL synchronous_commit = off"); err != nil {
			return err
		}
		changed, err := c.Exec("UPDATE deckhand.sessions SET compressed = $2 WHERE n = $1 AND compressed = $3 AND last >= $2 AND NOT deleted", l.n, last, first)
		if err != nil {
			return err
		}
		removed := int64(0)
		if changed == 1 {
			if removed, err = c.Exec("DELETE FROM deckhand.events WHERE n = $1 AND last > $2 AND last <= $3", l.n, first, last); err != nil {
				return err
			}
		}
		if removed != int64(p.Rows) {
			return errMeanwhile
		}
		_, err = c.Exec("INSERT INTO deckhand.events (n, last, at, body) VALUES ($1, $2, $3, $4)", l.n, last, p.At, body)
		return err
	})
	if errors.Is(err, errMeanwhile) {
		l.from = l.to
		return nil
	}
	return err
}
