package postgres

import (
	"context"
	"errors"
	"testing"

	"deckhand/internal/idempotency"
	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
)

var answer = idempotency.Answer{User: "ada", Key: "k", Request: "r", Status: 200, CreatedAt: noon}

// recentForget drops what is in memory.
func (o opened) recentForget() { o.recent = packed.NewRecent() }

// The server is killed while sessions grow, and comes back: what was answered is there, nothing is
// there twice, and the appends go on without anybody opening the database again.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	pgtest.Available(t)
	server, err := pgtest.Start()
	must(t, err)
	defer func() { _ = server.Stop() }()
	db := openAt(t, server.Database(t))
	const callers = 8
	type end struct {
		id      session.ID
		stored  int64 // answered
		perhaps int64 // not answered
	}
	half, killed, ends := make(chan struct{}, callers), make(chan struct{}), make(chan end, callers)
	for range callers {
		go func() {
			b := newSession(db.NewID())
			e := end{id: b.ID}
			for i := 0; ; i++ {
				err := db.Append(context.Background(), b)
				last := b.After + int64(len(b.Events))
				if err != nil {
					if errors.Is(err, session.ErrConflict) || !errors.Is(err, pg.ErrDown) {
						t.Errorf("an append ended in %v", err)
					}
					e.perhaps = last
					break
				}
				e.stored = last
				b = noted(b, "more")
				if i == 20 {
					half <- struct{}{}
				}
				select {
				case <-killed:
					if i > 5000 {
						t.Error("the kill is not noticed")
						ends <- e
						return
					}
				default:
				}
			}
			ends <- e
		}()
	}
	for range callers {
		<-half
	}
	must(t, server.Kill())
	close(killed)
	var all []end
	for range callers {
		all = append(all, <-ends)
	}
	if err := db.Healthy(); !errors.Is(err, pg.ErrDown) {
		t.Errorf("healthy: %v, want pg.ErrDown", err)
	}
	must(t, server.Restart())
	for _, e := range all {
		got := readAll(t, openless(db), e.id, 0)
		if n := int64(len(got)); n != e.stored && n != e.perhaps {
			t.Errorf("%d events, but %d were answered and %d were not", n, e.stored, e.perhaps)
		}
		for i, x := range got {
			if x.Number != int64(i+1) {
				t.Fatalf("event %d is number %d", i+1, x.Number)
			}
		}
	}
	must(t, db.Append(t.Context(), newSession(db.NewID())))
	must(t, db.Healthy())
	must(t, db.Check(t.Context()))
}

// A connection ends after the commit and before the answer: the append is known to be stored.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	b := newSession(db.NewID())
	a, err := db.DB.encode(b, db.chain.Start(b.ID, 0))
	must(t, err)
	must(t, db.writer.append(t.Context(), a)) // as if its answer were lost
	l := &line{writer: db.writer}
	defer l.drop()
	mine, other := &job{appending: a}, &job{}
	other.appending, err = db.DB.encode(noted(b, "another"), a.mark)
	must(t, err)
	late := newSession(b.ID)
	late.Events[1].Payload = session.Noted{ID: "n", Message: "not the same"}
	theirs := &job{}
	theirs.appending, err = db.DB.encode(late, packed.Mark{})
	must(t, err)
	l.resend([]*job{mine}, errors.New("lost"))
	l.resend([]*job{theirs}, errors.New("lost"))
	l.resend([]*job{other}, errors.New("lost"))
	if mine.err != nil || other.err != nil || !errors.Is(theirs.err, session.ErrConflict) {
		t.Errorf("%v, %v, %v", mine.err, other.err, theirs.err)
	}
	if got := readAll(t, openless(db), b.ID, 0); len(got) != 3 {
		t.Errorf("%d events", len(got))
	}
}
