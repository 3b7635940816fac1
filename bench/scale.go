package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
)

// look is what is seen of a server with a number of stored conversations.
type look struct {
	conversations int
	starts        []float64 // ms to the first healthy answer
	rss           []float64 // MB
	list          []float64 // ms, the median of each start's
}

// scale compares servers with many, few and no conversations. The servers take
// turns, so that what else the machine does hits all.
func scale(b *bench) error {
	full := pick(b, 100_000, 10_000)
	looks := []*look{{conversations: 0}, {conversations: 20}, {conversations: full}}
	var dirs []string
	for _, l := range looks {
		dir, err := b.stock(l.conversations)
		if err != nil {
			return err
		}
		dirs = append(dirs, dir)
	}
	for round := range pick(b, 5, 3) {
		for i, l := range looks {
			if err := l.take(b, dirs[i]); err != nil {
				return err
			}
		}
		last := len(looks) - 1
		say("round %d: healthy after %s empty, %s full", round+1, figure(looks[0].starts[round], millis), figure(looks[last].starts[round], millis))
	}
	record(b.report, looks[0], looks[1], looks[2])
	return nil
}

func record(r *report, none, few, full *look) {
	n := figure(float64(full.conversations), count)
	r.add("scale", "start to healthy with "+n+" conversations, against none", millis, median(full.starts), median(none.starts)).atMost(300)
	r.add("scale", "memory of an empty server", megabytes, median(none.rss), 0).atMost(40)
	more := median(full.rss) - median(none.rss)
	r.add("scale", "memory with "+n+" conversations, against none", megabytes, median(full.rss), median(none.rss)).
		require(more <= 10, "at most 10 MB more").note("%+.1f MB", more)
	r.add("scale", "first page of the list with "+n+", against an empty one", millis, median(full.list), median(none.list))
	r.add("scale", "first page of the list with "+n+", against a server with just that page", millis, median(full.list), median(few.list)).ratioAtMost(2)
}

// take starts a server, looks, and stops it.
func (l *look) take(b *bench, dir string) error {
	c, err := b.deckhand(dir)
	if err != nil {
		return err
	}
	defer c.stop()
	l.starts = append(l.starts, float64(c.took.Nanoseconds())/1e6)
	list := message("GET", "/api/conversations?limit=20", c.addr, c.key, "")
	if _, err := ask1(c.addr, list); err != nil {
		return err
	}
	l.rss = append(l.rss, c.rss(b.ctx))
	line, err := dial(c.addr)
	if err != nil {
		return err
	}
	defer line.close()
	var took []time.Duration
	for range 300 {
		begin := time.Now()
		if _, err := line.ask(list); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
	}
	l.list = append(l.list, percentile(took, 50))
	return nil
}

// stock makes a data folder with n conversations of the admin: half of them
// stopped, half waiting for a message, so that none wants to be worked on.
func (b *bench) stock(n int) (string, error) {
	c, err := b.fresh()
	if err != nil {
		return "", err
	}
	c.stop() // now the folder has its keys and settings
	if n == 0 {
		return c.dir, nil
	}
	db, err := sqlite.Open(b.ctx, filepath.Join(c.dir, "deckhand.db"), sqlite.Options{})
	if err != nil {
		return "", err
	}
	begin := time.Now()
	err = fill(b, db, n)
	if closed := db.Close(); err == nil {
		err = closed
	}
	say("stored %s conversations in %.1f s", figure(float64(n), count), time.Since(begin).Seconds())
	return c.dir, err
}

func fill(b *bench, db *sqlite.DB, n int) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	failed := make(chan error, callers)
	first := time.Now().Add(-time.Duration(n) * time.Second)
	for range callers {
		wait.Go(func() {
			for i := next.Add(1); i <= int64(n) && len(failed) == 0; i = next.Add(1) {
				book := begin(db.NewID(), "admin", first.Add(time.Duration(i)*time.Second))
				if i%2 == 0 {
					book.add(session.Stopped{Reason: "stopped because it was idle"})
				}
				if book.state.Wants() {
					failed <- fmt.Errorf("a stored conversation wants to be worked on: %s", book.state.Status())
					return
				}
				if err := book.flush(b.ctx, db); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wait.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
