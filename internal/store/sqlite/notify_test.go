package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/notify"
	"deckhand/internal/notify/notifytest"
	"deckhand/internal/session"
	"deckhand/internal/store/packed"
)

func TestWebhooksSuite(t *testing.T) {
	notifytest.Run(t, func(t *testing.T) notifytest.Rig {
		db := openNew(t)
		return notifytest.Rig{Store: db.Webhooks(), Log: db,
			AddUser:     func(name string) { must(t, db.CreateUser(t.Context(), access.User{Name: name, CreatedAt: noon})) },
			DisableUser: func(name string) { must(t, db.SetUserDisabled(t.Context(), name, true)) }}
	})
}

// listening is a store with a webhook of maria's.
func listening(t testing.TB) *DB {
	t.Helper()
	db := openNew(t)
	ctx := context.Background()
	if err := db.CreateUser(ctx, access.User{Name: "maria", CreatedAt: noon}); err != nil {
		t.Fatal(err)
	}
	w := notify.Webhook{ID: "a", User: "maria", Events: notify.AllEvents, Enabled: true, Sealed: []byte("x"), CreatedAt: noon, ChangedAt: noon}
	if err := db.Webhooks().AddWebhook(ctx, w); err != nil {
		t.Fatal(err)
	}
	return db
}

// tellOf appends a session of maria's that brings so much news.
func tellOf(t *testing.T, db *DB, id session.ID, news int) {
	t.Helper()
	b := session.Batch{ID: id, Events: []session.Event{{Number: 1, At: noon, Payload: session.Created{Owner: "maria"}}},
		Row: session.Row{ID: id, Owner: "maria", CreatedAt: noon, UpdatedAt: noon}}
	for i := range news {
		b.News = append(b.News, session.News{Kind: session.NewsStateChanged, Number: int64(i + 1), At: noon})
	}
	must(t, db.Append(t.Context(), b))
}

// copied makes so many deliveries of one.
func copied(t *testing.T, db *DB, n int) {
	t.Helper()
	tellOf(t, db, "one", 1)
	execute(t, db, fmt.Sprintf(`INSERT INTO queue_items SELECT queue, owner, i, id || i, NULL, lane, session, kind, state, open, attempts, created_at + i, next_at, body, details
		FROM queue_items, (WITH RECURSIVE s (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM s WHERE i < %d) SELECT i FROM s)`, n))
}

func tableCount(t *testing.T, db *DB, sql string) (n int64) {
	t.Helper()
	must(t, db.readers.read(t.Context(), func(c *conn) error {
		_, err := c.one(sql, func(v []driver.Value) { n = number(v[0]) })
		return err
	}))
	return n
}

func execute(t *testing.T, db *DB, sql string) {
	t.Helper()
	must(t, db.write(t.Context(), 0, func(c *conn) error { _, err := c.exec(sql); return err }))
}

func TestWebhookKeepsTheNewestDeliveries(t *testing.T) {
	db := listening(t)
	copied(t, db, notify.KeptDeliveries+30)
	execute(t, db, "UPDATE queue_items SET next_at = NULL, open = 0, state = 'delivered' WHERE seq > 3")
	w, d, found, err := db.Webhooks().Next(t.Context(), "a", noon)
	if err != nil || !found || d.Seq != 1 {
		t.Fatal(d.Seq, found, err)
	}
	must(t, db.Webhooks().Settle(t.Context(), w, d))
	if n := tableCount(t, db, "SELECT count(*) FROM queue_items WHERE next_at IS NULL"); n != notify.KeptDeliveries {
		t.Errorf("%d are kept", n)
	}
	if n := tableCount(t, db, "SELECT count(*) FROM queue_items WHERE next_at IS NOT NULL"); n != 3 {
		t.Errorf("of those that wait, %d are kept", n)
	}
}

func TestTrimGoesInPieces(t *testing.T) {
	db := listening(t)
	copied(t, db, 2005)
	must(t, db.Webhooks().Trim(t.Context(), noon.Add(time.Second)))
	if n := tableCount(t, db, "SELECT count(*) FROM queue_items"); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestTooMuchWaitingDisables(t *testing.T) {
	db := listening(t)
	tellOf(t, db, "one", 1)
	execute(t, db, fmt.Sprintf("UPDATE queue_lanes SET waiting = %d", notify.MaxWaiting-2))
	tellOf(t, db, "two", 3)
	found, err := db.Webhooks().Webhooks(t.Context(), "maria", notify.KindWebhook)
	must(t, err)
	if w := found[0]; w.Enabled || w.Health.Disabled != "10000 deliveries wait for it" || w.Waiting != notify.MaxWaiting {
		t.Errorf("%+v", w)
	}
	if n := tableCount(t, db, "SELECT count(*) FROM queue_items"); n != 3 {
		t.Errorf("%d were queued", n)
	}
}

func TestRemovedUserLeavesNoDeliveries(t *testing.T) {
	db := listening(t)
	tellOf(t, db, "one", 3)
	execute(t, db, "DELETE FROM users WHERE name = 'maria'")
	if n := tableCount(t, db, "SELECT (SELECT count(*) FROM webhooks) + (SELECT count(*) FROM queue_items)"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// A rollback takes what was queued with it, and the writer does not believe what it had read.
func TestRolledBackNews(t *testing.T) {
	db := listening(t)
	boom := fmt.Errorf("boom")
	err := db.write(t.Context(), 0, func(c *conn) error {
		a, err := db.encode(session.Batch{ID: "one", Events: []session.Event{{Number: 1, At: noon, Payload: session.Created{Owner: "maria"}}},
			Row: session.Row{ID: "one", Owner: "maria"}, News: []session.News{{Kind: session.NewsCreated, Number: 1, At: noon}}}, packed.Mark{})
		if err == nil {
			err = a.store(c)
		}
		if err != nil {
			return err
		}
		return boom
	})
	if err == nil {
		t.Fatal("no error")
	}
	if len(db.news.fresh) > 0 {
		t.Errorf("%v", db.news.fresh)
	}
	if n := tableCount(t, db, "SELECT count(*) FROM queue_items"); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// What an append costs whose owner is told of it, once per message.
func BenchmarkAppendTold(b *testing.B) {
	db := listening(b)
	first := newSession()
	first.Row.Owner = "maria"
	if err := db.Append(context.Background(), first); err != nil {
		b.Fatal(err)
	}
	last := int64(2)
	for b.Loop() {
		next := batch(first, last, 1)
		next.News = []session.News{{Kind: session.NewsStateChanged, Number: last + 1, At: noon}}
		if err := db.Append(context.Background(), next); err != nil {
			b.Fatal(err)
		}
		last++
	}
	perSecond(b)
}
