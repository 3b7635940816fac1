package main

import (
	"context"
	"path/filepath"
	"time"

	"deckhand/bench/floor"
	"deckhand/bench/history"
	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
)

// callers is how many clients there are when there are many.
const callers = 64

// appends compares the store's Append with one row per transaction by one writer.
func appends(b *bench) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	raw, err := floor.OpenRaw(b.ctx, filepath.Join(dir, "raw.db"), floor.WrittenDown)
	if err != nil {
		return err
	}
	defer raw.Close()
	db, err := sqlite.Open(b.ctx, filepath.Join(dir, "ours.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	grow, err := growing(b.ctx, db)
	if err != nil {
		return err
	}
	create := func(int) error { return db.Append(b.ctx, creation(db.NewID())) }
	insert := func(int) error {
		return raw.Add(string(session.NewID()), time.Now().UnixMicro(), []byte(`{"text":"`+history.FirstMessage+`"}`))
	}
	contenders := []struct {
		name    string
		callers int
		do      func(int) error
		least   float64 // ratio to the raw insert
		got     load.Rounds
	}{
		{"raw insert, one caller", 1, insert, 1, nil},
		{"create, one caller", 1, create, 0.5, nil},
		{"append, one caller", 1, grow, 0.7, nil},
		{"create, 64 at once", callers, create, 1, nil},
		{"append, 64 at once", callers, grow, 1, nil},
	}
	for round := range pick(b, 4, 3) {
		for i := range contenders {
			c := &contenders[i]
			s, err := load.Hammer(c.callers, pick(b, time.Second, 400*time.Millisecond), c.do)
			if err != nil {
				return err
			}
			c.got = append(c.got, s)
			say("round %d: %-24s %s", round+1, c.name, report.Figure(s.Rate(), report.PerSecond))
		}
	}
	least := contenders[0].got
	for _, c := range contenders[1:] {
		l := b.report.Add("append", c.name, report.PerSecond, c.got.Rate(), least.Rate()).PairedBy(load.Paired(c.got, least))
		l.Comment("p50 %s, p99 %s; floor p50 %s", report.Figure(c.got.Delay(50), report.Millis), report.Figure(c.got.Delay(99), report.Millis), report.Figure(least.Delay(50), report.Millis))
		l.RatioAtLeast(c.least)
	}
	return nil
}

// creation is what the API stores for a new conversation with its first message.
func creation(id session.ID) session.Batch {
	b := &history.Book{State: session.State{ID: id}, At: time.Now().UTC().Truncate(time.Microsecond)}
	b.Add(session.Created{Owner: "admin", Trigger: "gui"}, session.UserSaid{Text: history.FirstMessage})
	return session.Batch{ID: b.State.ID, Events: b.Events, Row: b.State.Row()}
}

// growing gives each caller a session of its own and a function that appends
// one event to it.
func growing(ctx context.Context, db interface {
	session.Log
	NewID() session.ID
}) (func(caller int) error, error) {
	books := make([]*history.Book, callers)
	for i := range books {
		books[i] = history.Begin(db.NewID(), "admin", time.Now())
		if err := books[i].Flush(ctx, db); err != nil {
			return nil, err
		}
	}
	return func(caller int) error {
		b := books[caller]
		b.At = time.Now().UTC().Truncate(time.Microsecond)
		b.Add(session.Noted{ID: "n", Message: "A line of what happened."})
		return b.Flush(ctx, db)
	}, nil
}
