package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/bench/floor"
	"deckhand/bench/history"
	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/session"
)

// look is what is seen of a server with a number of stored conversations.
type look struct {
	conversations int
	database      string    // the URL of a PostgreSQL database; "" is SQLite in the data folder
	keys          []string  // of the admin
	starts        []float64 // ms to the first healthy answer
	rss           float64   // MB, of the first one
	old           string    // a conversation in the middle
	// Medians of each start, in ms.
	list, search, open, rename []float64
	bytes                      int64 // of the database
}

// needle is a word in the title of one conversation.
const needle = "Find the needle in the haystack"

// scale compares servers with many, few and no conversations, which take turns: what else the machine does hits all.
func scale(b *bench) error {
	full := cmp.Or(b.conversations, pick(b, 100_000, 10_000))
	return compareLooks(b, "scale", &look{conversations: 0}, &look{conversations: 20}, &look{conversations: full})
}

// compareLooks compares servers with different numbers of conversations.
func compareLooks(b *bench, part string, looks ...*look) error {
	var dirs []string
	for _, l := range looks {
		dir, err := b.stock(l)
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
		say("round %d: healthy after %s empty, %s full", round+1, report.Figure(looks[0].starts[round], report.Millis), report.Figure(looks[last].starts[round], report.Millis))
	}
	record(b.report, b, part, looks[0], looks[1], looks[2])
	return nil
}

func record(r *report.Report, b *bench, part string, none, few, full *look) {
	n := report.Figure(float64(full.conversations), report.Count)
	r.Add(part, "start to healthy with "+n+" conversations, against none", report.Millis, load.Median(full.starts), load.Median(none.starts)).
		AtMost(300).RatioAtMost(1.2).Comment("%d events in each", max(b.events, shortBook))
	r.Add(part, "memory of an empty server", report.Megabytes, none.rss, 0).AtMost(40)
	r.Add(part, "memory with "+n+" conversations, against none", report.Megabytes, full.rss, none.rss).Require(full.rss-none.rss <= 10, "at most 10 MB more")
	r.Add(part, "first page of the list with "+n+", against an empty one", report.Millis, load.Median(full.list), load.Median(none.list)).AtMost(1)
	for _, row := range []struct {
		name       string
		full, base []float64
	}{
		{"first page of the list", full.list, few.list},
		{"search for a word that one has", full.search, few.search},
		{"first page of an old conversation", full.open, few.open},
		{"change of its title", full.rename, few.rename},
	} {
		r.Add(part, row.name+" with "+n+", against a server with 20", report.Millis, load.Median(row.full), load.Median(row.base)).RatioAtMost(1.2)
	}
	if full.database != "" {
		return
	}
	events := float64(full.conversations) * float64(max(b.events, shortBook))
	r.Add(part, "disk for each of "+report.Figure(events, report.Count)+" events", report.Bytes, float64(full.bytes)/events, 0).AtMost(100)
}

// take starts a server, looks, and stops it.
func (l *look) take(b *bench, dir string) error {
	c, err := load.Serve(b.ctx, b.dir, b.server, dir, nil, l.flags()...)
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
	list := "/api/conversations?limit=20"
	if _, err := load.Ask1(c.Addr, load.Message("GET", list, c.Addr, c.Key, "")); err != nil {
		return err
	}
	if l.rss == 0 {
		time.Sleep(startOver)
		l.rss = c.RSS(b.ctx)
	}
	link, err := load.Dial(c.Addr)
	if err != nil {
		return err
	}
	defer link.Close()
	for _, q := range []struct {
		into               *[]float64
		method, path, body string
	}{
		{&l.list, "GET", list, ""},
		{&l.search, "GET", "/api/conversations?limit=20&query=needle", ""},
		{&l.open, "GET", "/api/conversations/" + l.old + "/events?limit=20", ""},
		{&l.rename, "PATCH", "/api/conversations/" + l.old, `{"title":"` + needle + ` #"}`},
	} {
		if l.old == "" && q.into != &l.list {
			continue
		}
		var took []time.Duration
		for i := range 100 { // all together as many as the limit of one user lets through at once
			request := load.Message(q.method, q.path, c.Addr, l.keys[i%len(l.keys)], strings.ReplaceAll(q.body, "#", fmt.Sprint(i)))
			begin := time.Now()
			if _, err := link.Ask(request); err != nil {
				return fmt.Errorf("%s %s: %w", q.method, q.path, err)
			}
			took = append(took, time.Since(begin))
		}
		*q.into = append(*q.into, load.Percentile(took, 50))
	}
	return nil
}

// stock makes a data folder with conversations of the admin: half of them
// stopped, half waiting for a message, so that none wants to be worked on. They are
// old, and the database has been tended since.
func (b *bench) stock(l *look) (string, error) {
	dir, err := b.folder()
	if err != nil {
		return "", err
	}
	c, err := load.Serve(b.ctx, b.dir, b.server, dir, nil, l.flags()...)
	if err != nil {
		return "", err
	}
	err = c.Store(c.Key, demoSettings)
	c.Stop() // now the folder has its keys and settings
	if err != nil || l.conversations == 0 {
		return dir, err
	}
	db, err := history.Open(b.ctx, dir, l.database)
	if err != nil {
		return "", err
	}
	began := time.Now()
	// In portions, so that the disk need not hold all of them uncompressed.
	for first := 1; first <= l.conversations && err == nil; first += portion {
		last := min(first+portion-1, l.conversations)
		if err = l.fill(b, db, first, last); err == nil {
			err = db.Tend(b.ctx, time.Now())
		}
		say("stored %s of %s conversations in %.0f s", report.Figure(float64(last), report.Count), report.Figure(float64(l.conversations), report.Count), time.Since(began).Seconds())
	}
	if err = cmp.Or(err, db.Close()); err == nil && l.database != "" {
		err = floor.Settle(b.ctx, l.database)
	}
	if info, statErr := os.Stat(filepath.Join(dir, "deckhand.db")); statErr == nil {
		l.bytes = info.Size()
	}
	return dir, err
}

const (
	portion   = 20_000
	shortBook = 10 // events that begin and its title make
)

// flags are those of a server on the database.
func (l *look) flags() []string {
	if l.database == "" {
		return nil
	}
	return []string{"--database-url", l.database}
}

func (l *look) fill(b *bench, db history.Database, from, to int) error {
	var next atomic.Int64
	next.Store(int64(from) - 1)
	var wait sync.WaitGroup
	failed := make(chan error, callers)
	first := time.Now().AddDate(-1, 0, 0)
	middle := int64(l.conversations / 2)
	for range callers {
		wait.Go(func() {
			for i := next.Add(1); i <= int64(to) && len(failed) == 0; i = next.Add(1) {
				book := history.Begin(db.NewID(), "admin", first.Add(time.Duration(i)*time.Second))
				book.Grow(int64(b.events))
				if i == middle {
					book.Add(session.Titled{Title: needle})
					l.old = string(book.State.ID)
				}
				if i%2 == 0 {
					book.Add(session.Stopped{Reason: "stopped because it was idle"})
				}
				if book.State.Wants() {
					failed <- fmt.Errorf("a stored conversation wants to be worked on: %s", book.State.Status())
					return
				}
				if err := book.Flush(b.ctx, db); err != nil {
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
