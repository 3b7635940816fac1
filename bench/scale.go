package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
)

// look is what is seen of a server with a number of stored conversations.
type look struct {
	conversations int
	keys          []string  // of the admin
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
	for round := range pick(b, 3, 2) {
		for i, l := range looks {
			if err := l.take(b, dirs[i]); err != nil {
				return err
			}
		}
		last := len(looks) - 1
		say("round %d: healthy after %s empty, %s full", round+1, report.Figure(looks[0].starts[round], report.Millis), report.Figure(looks[last].starts[round], report.Millis))
	}
	record(b.report, looks[0], looks[1], looks[2])
	return nil
}

func record(r *report.Report, none, few, full *look) {
	n := report.Figure(float64(full.conversations), report.Count)
	r.Add("scale", "start to healthy with "+n+" conversations, against none", report.Millis, load.Median(full.starts), load.Median(none.starts)).AtMost(300).RatioAtMost(1.2)
	r.Add("scale", "memory of an empty server", report.Megabytes, load.Median(none.rss), 0).AtMost(40)
	more := load.Median(full.rss) - load.Median(none.rss)
	r.Add("scale", "memory with "+n+" conversations, against none", report.Megabytes, load.Median(full.rss), load.Median(none.rss)).
		Require(more <= 10, "at most 10 MB more").Comment("%+.1f MB", more)
	r.Add("scale", "first page of the list with "+n+", against an empty one", report.Millis, load.Median(full.list), load.Median(none.list)).AtMost(1)
	r.Add("scale", "first page of the list with "+n+", against a server with just that page", report.Millis, load.Median(full.list), load.Median(few.list)).RatioAtMost(1.2)
}

// take starts a server, looks, and stops it.
func (l *look) take(b *bench, dir string) error {
	c, err := load.Serve(b.ctx, b.dir, b.server, dir, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	l.starts = append(l.starts, float64(c.Took.Nanoseconds())/1e6)
	if l.keys == nil {
		if l.keys, err = c.AdminKeys(); err != nil {
			return err
		}
	}
	list := func(key string) []byte { return load.Message("GET", "/api/conversations?limit=20", c.Addr, key, "") }
	if _, err := load.Ask1(c.Addr, list(c.Key)); err != nil {
		return err
	}
	l.rss = append(l.rss, c.RSS(b.ctx))
	line, err := load.Dial(c.Addr)
	if err != nil {
		return err
	}
	defer line.Close()
	var took []time.Duration
	for i := range 300 { // as many as the limit of one user lets through at once
		request := list(l.keys[i%len(l.keys)])
		begin := time.Now()
		if _, err := line.Ask(request); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
	}
	l.list = append(l.list, load.Percentile(took, 50))
	return nil
}

// stock makes a data folder with n conversations of the admin: half of them
// stopped, half waiting for a message, so that none wants to be worked on.
func (b *bench) stock(n int) (string, error) {
	dir, err := b.folder()
	if err != nil {
		return "", err
	}
	c, err := load.Serve(b.ctx, b.dir, b.server, dir, nil)
	if err != nil {
		return "", err
	}
	err = c.Store(c.Key, demoSettings)
	c.Stop() // now the folder has its keys and settings
	if err != nil || n == 0 {
		return dir, err
	}
	db, err := sqlite.Open(b.ctx, filepath.Join(dir, "deckhand.db"), sqlite.Options{})
	if err != nil {
		return "", err
	}
	begin := time.Now()
	err = fill(b, db, n)
	if closed := db.Close(); err == nil {
		err = closed
	}
	say("stored %s conversations in %.1f s", report.Figure(float64(n), report.Count), time.Since(begin).Seconds())
	return dir, err
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
