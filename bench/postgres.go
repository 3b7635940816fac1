package main

import (
	"cmp"
	"strconv"
	"time"

	"deckhand/bench/floor"
	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/store/postgres"
	"deckhand/internal/store/postgres/pgtest"
)

// onPostgres measures a server of PostgreSQL that waits for the disk.
func onPostgres(b *bench) error {
	server, err := pgtest.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	address, err := server.Create()
	if err != nil {
		return err
	}
	if err := appendsToPostgres(b, address); err != nil {
		return err
	}
	full := cmp.Or(b.conversations, pick(b, 1_000_000, 10_000))
	looks := []*look{{conversations: 0}, {conversations: 20}, {conversations: full}}
	for _, l := range looks {
		if l.database, err = server.Create(); err != nil {
			return err
		}
	}
	return compareLooks(b, "postgres", looks...)
}

// appendsToPostgres compares the store's Append with a prepared statement that writes the same two rows: that of the event and that of its session.
func appendsToPostgres(b *bench, address string) error {
	db, err := postgres.Open(b.ctx, address, postgres.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	db.UseChain([32]byte{1}, 0)
	grow, err := growing(b.ctx, db)
	if err != nil {
		return err
	}
	write, stop, err := floor.Rows(b.ctx, address, callers)
	if err != nil {
		return err
	}
	defer stop()
	for _, n := range []int{1, 8, callers} {
		var ours, raw load.Rounds
		for round := range pick(b, 6, 4) {
			for i := range 2 {
				do, into := grow, &ours
				if (i+round)%2 == 0 {
					do, into = write, &raw
				}
				s, err := load.Hammer(n, pick(b, time.Second, 400*time.Millisecond), do)
				if err != nil {
					return err
				}
				*into = append(*into, s)
			}
		}
		name := "append, " + strconv.Itoa(n) + " at once, against raw inserts of the same rows"
		l := b.report.Add("postgres", name, report.PerSecond, ours.Rate(), raw.Rate()).PairedBy(load.Paired(ours, raw))
		l.Comment("p50 %s, p99 %s; floor p50 %s", report.Figure(ours.Delay(50), report.Millis), report.Figure(ours.Delay(99), report.Millis), report.Figure(raw.Delay(50), report.Millis))
		l.RatioAtLeast(0.6)
	}
	return nil
}
