package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/session"
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
	full := b.conversations
	if full == 0 {
		full = pick(b, 1_000_000, 10_000)
	}
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
	raw, stop, err := rawRows(b.ctx, address)
	if err != nil {
		return err
	}
	defer stop()
	for _, n := range []int{1, 8, callers} {
		var ours, floor load.Rounds
		for round := range pick(b, 6, 4) {
			for i := range 2 {
				do, into := grow, &ours
				if (i+round)%2 == 0 {
					do, into = raw, &floor
				}
				s, err := load.Hammer(n, pick(b, time.Second, 400*time.Millisecond), do)
				if err != nil {
					return err
				}
				*into = append(*into, s)
			}
		}
		name := "append, " + strconv.Itoa(n) + " at once, against raw inserts of the same rows"
		l := b.report.Add("postgres", name, report.PerSecond, ours.Rate(), floor.Rate()).PairedBy(load.Paired(ours, floor))
		l.Comment("p50 %s, p99 %s; floor p50 %s", report.Figure(ours.Delay(50), report.Millis), report.Figure(ours.Delay(99), report.Millis), report.Figure(floor.Delay(50), report.Millis))
		l.RatioAtLeast(0.6)
	}
	return nil
}

// rawRows returns a function that writes the rows of an append, with a connection and a prepared statement for each caller.
func rawRows(ctx context.Context, address string) (do func(caller int) error, stop func(), err error) {
	var conns []*pgconn.PgConn
	stop = func() {
		for _, c := range conns {
			_ = c.Close(ctx)
		}
	}
	connect := func() (*pgconn.PgConn, error) {
		c, err := pgconn.Connect(ctx, address)
		if err == nil {
			conns = append(conns, c)
		}
		return c, err
	}
	c, err := connect()
	if err == nil {
		_, err = c.Exec(ctx, `CREATE TABLE raw_sessions (n bigint PRIMARY KEY, last bigint, row bytea) WITH (fillfactor = 75);
			CREATE TABLE raw_events (n bigint, last bigint, at bigint, body bytea, PRIMARY KEY (n, last))`).ReadAll()
	}
	body, encodeErr := session.Encode(session.Noted{ID: "n", Message: "A line of what happened."})
	row := make([]byte, 200) // what lists show of a session
	for i := 0; i < callers && err == nil && encodeErr == nil; i++ {
		if c, err = connect(); err != nil {
			break
		}
		if _, err = c.Exec(ctx, fmt.Sprintf("INSERT INTO raw_sessions VALUES (%d, 0, '')", i)).ReadAll(); err != nil {
			break
		}
		_, err = c.Prepare(ctx, "raw", `WITH s AS (UPDATE raw_sessions SET last = $2, row = $5 WHERE n = $1) INSERT INTO raw_events VALUES ($1, $2, $3, $4)`, nil)
	}
	if err == nil {
		err = encodeErr
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	last := make([]int64, callers)
	return func(caller int) error {
		last[caller]++
		text := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
		values := [][]byte{text(int64(caller)), text(last[caller]), text(time.Now().UnixMicro()), body, row}
		_, err := conns[caller+1].ExecPrepared(ctx, "raw", values, []int16{0, 0, 0, 1, 1}, nil).Close()
		return err
	}, stop, nil
}
