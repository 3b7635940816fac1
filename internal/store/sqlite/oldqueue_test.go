package sqlite

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"deckhand/internal/conversation"
	"deckhand/internal/notify"
	"deckhand/internal/outbound"
	"deckhand/internal/queue"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/trigger"
)

// oldFile makes a file of an earlier schema.
func oldFile(t *testing.T, schema int64, rows ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "deckhand.db")
	must(t, create(path))
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	all, err := steps()
	must(t, err)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, nil, goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(all...))
	must(t, err)
	_, err = provider.UpTo(t.Context(), schema)
	must(t, err)
	for _, row := range rows {
		_, err := db.ExecContext(t.Context(), row)
		must(t, err)
	}
	return path
}

const oldUser = `INSERT INTO users (name, admin, disabled, created_at) VALUES ('maria', 0, 0, 1)`

// Deliveries that waited when there was a table for webhooks alone are sent, once.
func TestOldDeliveriesAreSent(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Webhook-Id") }))
	t.Cleanup(receiver.Close)
	keyring, err := secret.OpenKeyring(t.Context(), t.TempDir(), "", secret.NewMemKeys())
	must(t, err)
	hooks := &notify.Hooks{Store: listening(t).Webhooks(), Seal: keyring}
	made, _, err := hooks.Create(t.Context(), "maria", notify.Change{URL: &receiver.URL}) // elsewhere, for what is sealed
	must(t, err)
	path := oldFile(t, 9, oldUser)
	db, err := sql.Open("sqlite", path)
	must(t, err)
	for _, w := range []struct {
		id      string
		enabled int
		waiting int
	}{{made.ID, 1, 2}, {"off", 0, 1}} {
		_, err = db.ExecContext(t.Context(), `INSERT INTO webhooks (id, user, description, events, enabled, target, created_at, changed_at, failures, failing_since, quiet_until, disabled, waiting, due_at)
			VALUES (?, 'maria', 'chat', 15, ?, ?, 1000000, 2000000, 1, 3000000, 4000000, '', ?, 5000000)`, w.id, w.enabled, made.Sealed, w.waiting)
		must(t, err)
	}
	for seq, d := range []struct {
		webhook, id, state string
		next               any
	}{{made.ID, "one", "delivered", nil}, {made.ID, "two", "waiting", 6000000}, {made.ID, "three", "waiting", 5000000}, {"off", "four", "waiting", 5000000}} {
		_, err = db.ExecContext(t.Context(), `INSERT INTO deliveries (webhook, seq, id, type, session, event, body, created_at, state, attempts, next_at, last_at, took, status, error)
			VALUES (?, ?, ?, 'conversation.created', 's', 7, CAST('{"a":1}' AS BLOB), ?, ?, 2, ?, 8000000, 9000, 503, 'it said "no"')`, d.webhook, seq+1, d.id, time.Now().UnixMicro(), d.state, d.next)
		must(t, err)
	}
	must(t, db.Close())

	store := openAt(t, path).Webhooks()
	found, err := store.Webhooks(t.Context(), "maria", notify.KindWebhook)
	must(t, err)
	if len(found) != 2 || found[0].Waiting+found[1].Waiting != 3 || found[0].Description != "chat" || found[0].Health.Failures != 1 {
		t.Errorf("%+v", found)
	}
	old, err := store.Deliveries(t.Context(), "maria", made.ID, 0, 10)
	must(t, err)
	want := notify.Delivery{ID: "two", Seq: 2, Webhook: made.ID, Type: "conversation.created", Session: "s", Event: 7, Body: []byte(`{"a":1}`), CreatedAt: old[1].CreatedAt,
		State: notify.Waiting, Attempts: 2, NextAt: time.UnixMicro(6000000).UTC(), LastAt: time.UnixMicro(8000000).UTC(), Took: 9 * time.Millisecond, Status: 503, Error: `it said "no"`}
	if len(old) != 3 || !reflect.DeepEqual(old[1], want) || !old[2].NextAt.IsZero() || old[2].State != notify.Delivered {
		t.Errorf("got  %+v\nwant %+v", old, want)
	}
	settled := &settledOutbox{store, make(chan notify.Delivery, 10)}
	stop := run(t, notify.NewDispatcher(settled, keyring, outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, 0), silent))
	for _, id := range []string{"three", "two"} { // by the time that they were due
		if sent := <-got; sent != id {
			t.Errorf("%s was sent, want %s", sent, id)
		}
		if d := <-settled.ds; d.State != notify.Delivered {
			t.Errorf("%+v", d)
		}
	}
	stop()
	if len(got) > 0 {
		t.Errorf("%s was sent too", <-got)
	}
}

type settledOutbox struct {
	notify.Outbox
	ds chan notify.Delivery
}

func (s *settledOutbox) Settle(ctx context.Context, w notify.Webhook, d notify.Delivery) error {
	err := s.Outbox.Settle(ctx, w, d)
	if err == nil {
		s.ds <- d
	}
	return err
}

// What a provider told when there was a table for that alone is done, once.
func TestOldArrivalsAreActedUpon(t *testing.T) {
	t.Parallel()
	arrival := func(seq, id, state, task, session, next string) string {
		return `INSERT INTO arrivals (integration, seq, id, print, event, repository, pull, number, actor, created_at, state, reason, task, session, said, posting, attempts, next_at, done_at)
			VALUES ('in', ` + seq + `, '` + id + `', 'print ` + id + `', 'comment', 'octo/app', 1, 7, 'ada', 1000000, '` + state + `', 'it said "no"', ` + task + `, '` + session + `', 3, 4, 2, ` + next + `, NULL)`
	}
	path := oldFile(t, 9, oldUser,
		`INSERT INTO integrations (id, user, provider, host, mention, label, repositories, allowed_users, enabled, secret, created_at, changed_at)
			VALUES ('in', 'maria', 'gitea', '', '@deckhand', '', 'null', '["*"]', 1, x'00', 1, 1)`,
		`INSERT INTO threads (integration, repository, pull, number, session) VALUES ('in', 'octo/app', 1, 7, 'talk')`,
		arrival("1", "ignored", "ignored", "NULL", "", "NULL"),
		arrival("2", "told", "working", "NULL", "other", "NULL"),
		arrival("3", "posting", "working", "NULL", "other", "99000000000000000"),
		arrival("4", "asked", "waiting", `CAST('{"actors":["ada"],"text":"@deckhand mend it","comment":true}' AS BLOB)`, "", "2000000"))
	db := openAt(t, path)
	store := db.Triggers()
	all, err := store.Deliveries(t.Context(), "maria", "in", 0, 10)
	must(t, err)
	want := trigger.Delivery{Integration: "in", ID: "posting", Print: "print posting", Seq: 3, Event: "comment", Thread: trigger.Thread{Repository: "octo/app", Pull: true, Number: 7}, Actor: "ada",
		CreatedAt: time.UnixMicro(1000000).UTC(), State: trigger.Working, Reason: `it said "no"`, Session: "other", Said: 3, Posting: 4, Attempts: 2, NextAt: time.UnixMicro(99000000000000000).UTC()}
	if len(all) != 4 || !reflect.DeepEqual(all[1], want) {
		t.Errorf("got  %+v\nwant %+v", all, want)
	}
	if at, err := store.AtWork(t.Context(), "other"); err != nil || len(at) != 2 || at[0].ID != "told" || at[1].ID != "posting" {
		t.Errorf("%+v, %v", at, err)
	}
	must(t, store.View(t.Context(), func(tx queue.Tx) error {
		l, _, err := tx.Lane("session other")
		if l.Waiting != 1 || !l.DueAt.Equal(want.NextAt) || l.User != "maria" {
			t.Errorf("%+v", l)
		}
		return err
	}))

	sessions := session.New(db)
	for _, id := range []session.ID{"talk", "other"} {
		_, err := sessions.Create(t.Context(), id, session.Created{Owner: "maria"}, &session.UserSaid{Text: "hello"})
		must(t, err)
	}
	settled := &settledInbox{store, make(chan trigger.Delivery, 10)}
	stop := run(t, trigger.NewWorker(trigger.Config{Inbox: settled, Sessions: sessions, Log: db, Index: db, Logger: silent,
		Say: conversation.New(conversation.Config{Sessions: sessions, Index: db, Settings: settings.New(settings.NewMemStore(), nil, secret.NewRedactor())}).Say}))
	d := <-settled.ds
	for d.ID != "asked" {
		d = <-settled.ds
	}
	stop()
	if d.State != trigger.Working || d.Session != "talk" || d.Task != nil {
		t.Errorf("%+v", d)
	}
	said := 0
	for e, err := range db.Read(t.Context(), "talk", 0) {
		must(t, err)
		if _, ok := e.Payload.(session.UserSaid); ok {
			said++
		}
	}
	if said != 2 {
		t.Errorf("%d messages, want the first one and the one that waited", said)
	}
}

type settledInbox struct {
	trigger.Inbox
	ds chan trigger.Delivery
}

func (s *settledInbox) Settle(ctx context.Context, ds ...trigger.Delivery) error {
	err := s.Inbox.Settle(ctx, ds...)
	for _, d := range ds {
		if err == nil {
			s.ds <- d
		}
	}
	return err
}
