package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
)

// BenchmarkAppend compares Append with raw inserts of the same event rows, on a server that waits
// for the disk. The raw inserts use prepared statements and one connection per caller, and
// update no session row. The two alternate in short rounds, so that both meet the same load.
func BenchmarkAppend(b *testing.B) {
	pgtest.Available(b)
	server, err := pgtest.Start()
	must(b, err)
	defer func() { _ = server.Stop() }()
	db := openAt(b, server.Database(b))
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			raw, stop := rawInserts(b, db, callers)
			defer stop()
			ours := growing(b, db, callers)
			var rates [2][]float64
			for range 4 {
				for i, do := range []func(int) error{raw, ours} {
					rates[i] = append(rates[i], hammer(b, callers, time.Second, do))
				}
			}
			r, o := mean(rates[0]), mean(rates[1])
			b.ReportMetric(r, "raw/s")
			b.ReportMetric(o, "append/s")
			b.ReportMetric(o/r, "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// growing returns a function that appends one event to the session of a caller.
func growing(b *testing.B, db opened, callers int) func(caller int) error {
	b.Helper()
	next := make([]session.Batch, callers)
	for i := range next {
		next[i] = newSession(db.NewID())
		must(b, db.Append(context.Background(), next[i]))
	}
	return func(caller int) error {
		next[caller] = noted(next[caller], "A line of what happened.")
		return db.Append(context.Background(), next[caller])
	}
}

// rawInserts returns a function that inserts the event row of such an append.
func rawInserts(b *testing.B, db opened, callers int) (do func(caller int) error, stop func()) {
	b.Helper()
	ctx := context.Background()
	must(b, db.base.Update(ctx, func(c *pg.Conn) error {
		return c.Script("CREATE TABLE IF NOT EXISTS raw (n bigint, last bigint, at bigint, body bytea, PRIMARY KEY (n, last))")
	}))
	body, err := session.Encode(session.Noted{ID: "n", Message: "A line of what happened."})
	must(b, err)
	body = packed.Append(nil, session.KindNoted, 0, body)
	conns := make([]*pgconn.PgConn, callers)
	for i := range conns {
		conns[i], err = pgconn.Connect(ctx, db.address)
		must(b, err)
		_, err = conns[i].Prepare(ctx, "raw", "INSERT INTO raw (n, last, at, body) VALUES ($1, $2, $3, $4)", nil)
		must(b, err)
	}
	base := time.Now().UnixNano()
	last := make([]int64, callers)
	do = func(caller int) error {
		last[caller]++
		text := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
		values := [][]byte{text(base + int64(caller)), text(last[caller]), text(time.Now().UnixMicro()), body}
		_, err := conns[caller].ExecPrepared(ctx, "raw", values, []int16{0, 0, 0, 1}, nil).Close()
		return err
	}
	return do, func() {
		for _, c := range conns {
			_ = c.Close(ctx)
		}
	}
}

// hammer returns how many calls per second so many callers make.
func hammer(b *testing.B, callers int, d time.Duration, do func(caller int) error) float64 {
	b.Helper()
	var all sync.WaitGroup
	var n atomic.Int64
	begin := time.Now()
	for i := range callers {
		all.Go(func() {
			for time.Since(begin) < d {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	return float64(n.Load()) / time.Since(begin).Seconds()
}

func mean(all []float64) (m float64) {
	for _, v := range all {
		m += v / float64(len(all))
	}
	return m
}
