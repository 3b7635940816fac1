package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"strconv"
	"sync"
	"time"

	"deckhand/internal/store/packed"
	"deckhand/internal/store/sqlite/reserve"
)

const (
	// A log that has not grown for so long is compressed.
	coldAfter = 7 * 24 * time.Hour
	// A compressed row holds about so many bytes of events: a page of an old
	// conversation decompresses little, and most conversations fit into one row.
	coldBytes = 64 << 10
	// Between looks for such logs.
	coldEvery = 6 * time.Hour
	// fileAfter is how long a new session waits for the index of words.
	fileAfter = time.Second
	// throttleFactor is how many times longer upkeep pauses than it works, so that it takes at most
	// a tenth of a processor.
	throttleFactor = 9
)

// errNothing refuses a write that has nothing to do.
var errNothing = errors.New("there is nothing to do")

func orNothing(err error) error {
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// upkeep files new sessions by their words and compresses old logs, in two goroutines. What
// it does can be done at any time and again, so it needs no record of its own.
type upkeep struct {
	db    *DB
	wake  chan struct{}
	stop  context.CancelFunc
	loops sync.WaitGroup
}

func newUpkeep(db *DB) *upkeep {
	ctx, stop := context.WithCancel(context.Background())
	u := &upkeep{db: db, wake: make(chan struct{}, 1), stop: stop}
	u.changed() // of the last time something may be left
	u.loops.Go(func() { u.file(ctx) })
	u.loops.Go(func() { u.tend(ctx) })
	return u
}

// changed is told that there are sessions to file.
func (u *upkeep) changed() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *upkeep) close() {
	u.stop()
	u.loops.Wait()
}

// tend starts with a round, because a server that is restarted often would never reach a later one.
func (u *upkeep) tend(ctx context.Context) {
	for ctx.Err() == nil { // failures are retried in the next round
		_ = u.db.compress(ctx, time.Now().Add(-coldAfter), throttleFactor)
		_ = u.db.mergeWords(ctx, throttleFactor)
		_ = u.db.shrink(ctx, throttleFactor)
		packed.Wait(ctx, coldEvery)
	}
}

func (u *upkeep) file(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.wake:
			packed.Wait(ctx, fileAfter)
			_ = u.db.fileOwners(ctx, throttleFactor)
			_ = u.db.fileAll(ctx, throttleFactor)
			_ = u.db.shrink(ctx, throttleFactor)
		}
	}
}

// Tend does all upkeep at once: it files all sessions by their words, compresses the
// logs that have not grown since a time and makes the file smaller. A database that is open with Upkeep does so
// by itself.
func (db *DB) Tend(ctx context.Context, before time.Time) error {
	return errors.Join(db.fileOwners(ctx, 0), db.fileAll(ctx, 0), db.mergeWords(ctx, 0), db.compress(ctx, before, 0), db.shrink(ctx, 0))
}

// shrink gives unused pages back to the disk, as after conversations were deleted. A file from
// before this was possible stays as large as it is: see docs/backup.md.
func (db *DB) shrink(ctx context.Context, factor int) error {
	for {
		begin := time.Now()
		err := db.write(ctx, reserve.StepPages<<12, func(c *conn) error {
			some := false
			look := func(v []driver.Value) { some = reserve.TooMany(number(v[0]), number(v[1]), number(v[2])) }
			if _, err := c.one(reserve.Unused, look); err != nil || !some {
				return cmp.Or(err, refuse(errNothing))
			}
			return c.query("PRAGMA incremental_vacuum("+strconv.Itoa(reserve.StepPages)+")", func([]driver.Value) error { return nil })
		})
		if err != nil {
			return orNothing(err)
		}
		packed.Throttle(ctx, begin, factor)
	}
}

// cold is a session whose log can be compressed from one event to another.
type cold struct{ n, from, to int64 }

// compress compresses the logs that were written last before a time. If one cannot be compressed, it continues
// with the others.
func (db *DB) compress(ctx context.Context, before time.Time, factor int) (failed error) {
	for n := int64(0); ; {
		var logs []cold
		err := db.readers.read(ctx, func(c *conn) error {
			return c.query(`SELECT n, compressed, last FROM sessions WHERE n > ? AND updated_at < ? AND compressed < last AND deleted = 0
				ORDER BY n LIMIT 256`, func(v []driver.Value) error {
				logs = append(logs, cold{number(v[0]), number(v[1]), number(v[2])})
				return nil
			}, n, micros(before))
		})
		if err != nil || len(logs) == 0 {
			return cmp.Or(err, failed)
		}
		for _, l := range logs {
			begin := time.Now()
			for err = nil; l.from < l.to && err == nil; {
				err = db.compressNext(ctx, &l)
			}
			if err != nil && (ctx.Err() != nil || ofDatabase(err)) {
				return err
			}
			failed, n = cmp.Or(failed, err), l.n
			packed.Throttle(ctx, begin, factor)
		}
	}
}

// piece is some rows of a log, to be put into one.
type piece struct {
	packed.Joined
	first, last int64 // keys: those after the first, up to the last
	size        int   // of the rows as they are
}

// compressNext puts the next rows of a log into one.
func (db *DB) compressNext(ctx context.Context, l *cold) error {
	p, err := db.join(ctx, *l)
	if errors.Is(err, packed.ErrCut) { // the doctor needs a damaged log as it is
		l.from = l.to
		return nil
	}
	if err != nil {
		return err
	}
	l.from = p.last & (1<<numberBits - 1)
	return db.replace(ctx, p, *l)
}

func (db *DB) join(ctx context.Context, l cold) (piece, error) {
	p := piece{first: key(l.n, l.from), last: key(l.n, l.to)}
	err := db.readers.read(ctx, func(c *conn) error {
		return c.query("SELECT id, at, body FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT 512", func(v []driver.Value) error {
			if err := p.Add(number(v[1]), bytesOf(v[2])); err != nil {
				return err
			}
			p.last, p.size = number(v[0]), p.size+len(bytesOf(v[2]))
			if len(p.Body) >= coldBytes {
				return enough
			}
			return nil
		}, p.first, p.last)
	})
	return p, err
}

func (db *DB) replace(ctx context.Context, p piece, l cold) error {
	body := p.Row()
	return orNothing(db.write(ctx, len(body), func(c *conn) error {
		if len(body) < p.size {
			rows := 0
			count := func(v []driver.Value) { rows = int(number(v[0])) }
			if _, err := c.one("SELECT count(*) FROM events WHERE id > ? AND id <= ?", count, p.first, p.last); err != nil {
				return err
			}
			if rows != p.Rows {
				return refuse(errNothing) // it was deleted or repaired since
			}
			if _, err := c.exec("DELETE FROM events WHERE id > ? AND id <= ?", p.first, p.last); err != nil {
				return err
			}
			if _, err := c.exec("INSERT INTO events (id, at, body) VALUES (?, ?, ?)", p.last, p.At, body); err != nil {
				return err
			}
		}
		_, err := c.exec("UPDATE sessions SET compressed = ? WHERE n = ?", l.from, l.n)
		return err
	}))
}
