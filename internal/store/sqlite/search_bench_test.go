package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"deckhand/internal/session"
)

// A user with many conversations looks for some: the newest, a few that are
// spread over all, one at the far end, and what is not there.
func BenchmarkRows(b *testing.B) {
	db := benchDB(b)
	const many = 100_000
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	parallelCreate(b, many, func(i int) error { return db.Append(context.Background(), listedSession(db.NewID(), i, begin)) })
	must(b, db.fileAll(context.Background(), 0))
	for _, c := range []struct {
		name  string
		query session.Query
		found int
	}{
		{"newest", session.Query{}, 20},
		{"running", session.Query{Status: session.Running}, 20},
		{"word", session.Query{Text: "PARSER"}, 20},
		{"rare", session.Query{Text: "needle"}, 10},
		{"oldest", session.Query{Text: "number 0 "}, 1},
		{"nothing", session.Query{Text: "no such thing"}, 0},
		{"repository", session.Query{Repository: "maria/none"}, 0},
		{"starting", session.Query{Status: session.Starting}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.query.Owner, c.query.Limit = "maria", 20
			b.ReportAllocs()
			for b.Loop() {
				rows, err := db.Rows(context.Background(), c.query)
				if err != nil || len(rows) != c.found {
					b.Fatal(len(rows), err)
				}
			}
		})
	}
}

// listedSession is one of many, with a title like those that models give.
func listedSession(id session.ID, i int, begin time.Time) session.Batch {
	title := fmt.Sprintf("Fix the flaky test number %d of the lexer", i)
	switch {
	case i%10_000 == 5_000:
		title = fmt.Sprintf("Find the needle number %d of the haystack", i)
	case i%100 == 50:
		title = fmt.Sprintf("Rewrite the Parser number %d of the project", i)
	}
	status := session.Halted
	if i%1000 == 0 {
		status = session.Running
	}
	at := begin.Add(time.Duration(i) * time.Second)
	return session.Batch{ID: id, Events: []session.Event{{Number: 1, At: at, Payload: session.Created{Owner: "maria"}}},
		Row: session.Row{ID: id, Owner: "maria", Title: title, Status: status, Agent: session.AgentStopped, Reason: "stopped by the user", Trigger: "gui",
			Repository: fmt.Sprintf("maria/project-%d", i%50), Branch: "main", Provider: "github", CreatedAt: at, UpdatedAt: at, Last: 1,
			Totals: session.Totals{Cost: 1e9, Input: 100_000, Output: 10_000, Model: "acme/priced"}}}
}

// parallelCreate does n things, many at a time, so that they share commits.
func parallelCreate(b *testing.B, n int, do func(i int) error) {
	next, done := make(chan int), make(chan error, 256)
	for range cap(done) {
		go func() {
			var first error
			for i := range next {
				if err := do(i); err != nil && first == nil {
					first = err
				}
			}
			done <- first
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	for range cap(done) {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
