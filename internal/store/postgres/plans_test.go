package postgres

import (
	"testing"

	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
)

// A direct connection keeps plans and settings, and is replaced when the database has forgotten the plans. Through a pooler, nothing is kept.
func TestPlansAreKept(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	through := server.Bounced(t)
	db := openAt(t, server.Copy(t, base))
	l := &line{writer: db.writer}
	defer l.drop()
	b := newSession(db.NewID())
	stores := func() {
		t.Helper()
		a, err := db.encode(b, db.chain.Start(b.ID, 0))
		must(t, err)
		j := &job{appending: a, done: make(chan error, 1)}
		l.store([]*job{j})
		must(t, <-j.done)
		b = noted(b, "again")
	}
	stores()
	stores()
	if !l.c.Keeps() {
		t.Error("a direct connection keeps nothing")
	}
	l.c.Use(t.Context())
	n := int64(0)
	count := func(v []any) { n = pg.Number(v[0]) }
	_, err := l.c.One("SELECT count(*) FROM pg_prepared_statements", count)
	must(t, err)
	if n == 0 {
		t.Error("no statement is prepared")
	}
	first := l.c
	must(t, l.c.Script("DEALLOCATE ALL"))
	stores()
	if l.c == first {
		t.Error("the connection without plans was not replaced")
	}
	pooled := &line{writer: openAt(t, through(db.address)).writer}
	defer pooled.drop()
	l = pooled
	stores()
	stores()
	if l.c.Keeps() {
		t.Error("a connection through a pooler keeps plans")
	}
}
