// Package notifytest is the suite that every store of webhooks must pass: those
// it keeps, what it queues for them while a log grows, and how that is taken
// out again.
package notifytest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/notify"
	"deckhand/internal/queue"
	"deckhand/internal/session"
)

// Rig is a new store, together with the log that queues into it.
type Rig struct {
	Store interface {
		notify.Store
		notify.Deliveries
		notify.Outbox
	}
	Log session.Log
	// AddUser makes a user known, and DisableUser locks one out.
	AddUser, DisableUser func(name string)
}

// Noon is when the suite begins.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Run runs the suite. open makes a new, empty store.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	for name, test := range map[string]func(*suite){
		"webhooks":            (*suite).webhooks,
		"at most twenty":      (*suite).atMostTwenty,
		"changes":             (*suite).changes,
		"news is queued":      (*suite).newsIsQueued,
		"refused appends":     (*suite).refusedAppends,
		"order":               (*suite).order,
		"settling":            (*suite).settling,
		"settling old state":  (*suite).settlingOldState,
		"quiet":               (*suite).quiet,
		"disabled users":      (*suite).disabledUsers,
		"tests and retries":   (*suite).testsAndRetries,
		"pages of deliveries": (*suite).pages,
		"trim":                (*suite).trim,
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{Rig: open(t), T: t, now: Noon}
			s.sessions = session.New(s.Log, session.WithClock(func() time.Time { return s.now }))
			s.AddUser("maria")
			s.AddUser("otto")
			test(s)
		})
	}
}

type suite struct {
	Rig
	*testing.T
	sessions *session.Sessions
	now      time.Time
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// hook is a webhook with a field of every kind set.
func hook(user, id string) notify.Webhook {
	return notify.Webhook{ID: id, User: user, Description: "of " + user, Events: notify.AllEvents, Enabled: true,
		Sealed: []byte("sealed " + id), CreatedAt: Noon, ChangedAt: Noon}
}

func (s *suite) add(w notify.Webhook) {
	s.Helper()
	s.must(s.Store.AddWebhook(s.Context(), w))
}

// get reads a webhook of a user's.
func (s *suite) get(user, id string) notify.Webhook {
	s.Helper()
	found, err := s.Store.Webhooks(s.Context(), user, notify.KindWebhook)
	s.must(err)
	i := slices.IndexFunc(found, func(w notify.Webhook) bool { return w.ID == id })
	if i < 0 {
		s.Fatalf("%s has no %s: %+v", user, id, found)
	}
	return found[i]
}

// same compares all but what the store counts.
func (s *suite) same(got, want notify.Webhook) {
	s.Helper()
	got.Waiting, want.Waiting = 0, 0
	if !reflect.DeepEqual(got, want) {
		s.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func (s *suite) create(owner string, id session.ID) {
	s.Helper()
	_, err := s.sessions.Create(s.Context(), id, session.Created{Owner: owner}, nil)
	s.must(err)
}

// deliveries are all of a webhook's, the oldest first.
func (s *suite) deliveries(user, webhook string) []notify.Delivery {
	s.Helper()
	found, err := s.Store.Deliveries(s.Context(), user, webhook, 0, 1000)
	s.must(err)
	slices.Reverse(found)
	return found
}

// due are the webhooks for which something is due, and when the next will be.
func (s *suite) due(now time.Time) (string, time.Time) {
	s.Helper()
	var found []queue.Lane
	var next time.Time
	s.must(s.Store.View(s.Context(), func(tx queue.Tx) (err error) {
		found, next, err = tx.Ready(now, 100)
		return err
	}))
	var ids []string
	for _, l := range found {
		ids = append(ids, l.User+"/"+l.Name)
	}
	return strings.Join(ids, " "), next
}

func (s *suite) wantDue(now time.Time, want string, next time.Time) {
	s.Helper()
	if got, at := s.due(now); got != want || !at.Equal(next) {
		s.Errorf("due at %s: %q, then at %s; want %q and %s", now, got, at, want, next)
	}
}

func (s *suite) webhooks() {
	b := hook("maria", "b")
	b.CreatedAt = Noon.Add(time.Second)
	b.Health = notify.Health{Failures: 3, FailingSince: Noon, QuietUntil: Noon.Add(time.Hour), Disabled: "why"}
	b.Enabled, b.Events = false, notify.Of(session.NewsFinished)
	s.add(b)
	s.add(hook("maria", "a"))
	s.add(hook("otto", "c"))
	found, err := s.Store.Webhooks(s.Context(), "maria", notify.KindWebhook)
	s.must(err)
	if len(found) != 2 {
		s.Fatalf("%+v", found)
	}
	s.same(found[0], hook("maria", "a"))
	s.same(found[1], b)
	if err := s.Store.RemoveWebhook(s.Context(), "maria", "c"); !errors.Is(err, notify.ErrNotFound) {
		s.Errorf("another user's was removed: %v", err)
	}
	s.must(s.Store.RemoveWebhook(s.Context(), "maria", "a"))
	if err := s.Store.RemoveWebhook(s.Context(), "maria", "a"); !errors.Is(err, notify.ErrNotFound) {
		s.Errorf("removed twice: %v", err)
	}
	s.same(s.get("otto", "c"), hook("otto", "c"))
}

func (s *suite) atMostTwenty() {
	for i := range notify.MaxWebhooks {
		s.add(hook("maria", fmt.Sprint("wh", i)))
	}
	if err := s.Store.AddWebhook(s.Context(), hook("maria", "more")); !errors.Is(err, notify.ErrTooMany) {
		s.Errorf("one too many: %v", err)
	}
	s.add(hook("otto", "his"))
	s.must(s.Store.RemoveWebhook(s.Context(), "maria", "wh3"))
	s.add(hook("maria", "more"))
}

func (s *suite) changes() {
	s.add(hook("maria", "a"))
	ctx := s.Context()
	later := Noon.Add(time.Minute)
	changed, err := s.Store.ChangeWebhook(ctx, "maria", "a", later, func(w *notify.Webhook) error {
		w.Description, w.Events, w.Enabled, w.Sealed = "new", notify.Of(session.NewsCreated), false, []byte("other")
		w.Health = notify.Health{Failures: 2, FailingSince: Noon, QuietUntil: later, Disabled: "why"}
		return nil
	})
	s.must(err)
	want := hook("maria", "a")
	want.Description, want.Events, want.Enabled, want.Sealed, want.ChangedAt = "new", notify.Of(session.NewsCreated), false, []byte("other"), later
	want.Health = notify.Health{Failures: 2, FailingSince: Noon, QuietUntil: later, Disabled: "why"}
	s.same(changed, want)
	s.same(s.get("maria", "a"), want)

	no := errors.New("no")
	if _, err := s.Store.ChangeWebhook(ctx, "maria", "a", later, func(w *notify.Webhook) error { w.Description = "lost"; return no }); !errors.Is(err, no) {
		s.Errorf("got %v, want the error of the change", err)
	}
	s.same(s.get("maria", "a"), want)

	nothing := func(*notify.Webhook) error { return nil }
	if changed, err = s.Store.ChangeWebhook(ctx, "maria", "a", Noon, nothing); err != nil || !changed.ChangedAt.After(later) {
		s.Errorf("a clock that was set back: changed at %s, %v", changed.ChangedAt, err)
	}
	for _, who := range [][2]string{{"otto", "a"}, {"maria", "none"}} {
		if _, err := s.Store.ChangeWebhook(ctx, who[0], who[1], later, nothing); !errors.Is(err, notify.ErrNotFound) {
			s.Errorf("%v: %v", who, err)
		}
	}
}

func (s *suite) newsIsQueued() {
	s.create("maria", "before") // no webhook exists yet
	s.add(hook("maria", "all"))
	some := hook("maria", "some")
	some.Events = notify.Of(session.NewsCreated)
	s.add(some)
	off := hook("maria", "off")
	off.Enabled = false
	s.add(off)
	s.add(hook("otto", "his"))
	drain(s.Store.Added())
	s.create("maria", "one")
	select {
	case <-s.Store.Added():
	default:
		s.Error("no signal that something was added")
	}
	_, err := s.sessions.Update(s.Context(), "one", func(st session.State) ([]session.Payload, error) { return st.Stop("enough") })
	s.must(err)
	got := s.deliveries("maria", "all")
	if len(got) != 2 || got[0].Type != "conversation.created" || got[1].Type != "conversation.state_changed" {
		s.Fatalf("%+v", got)
	}
	want := notify.Compose("one", session.News{Kind: session.NewsCreated, Number: 1, At: Noon, Status: session.Starting, Agent: session.AgentLoading})
	want.Webhook, want.Seq = "all", 1
	if !reflect.DeepEqual(got[0], want) {
		s.Errorf("got  %+v\nwant %+v", got[0], want)
	}
	if some := s.deliveries("maria", "some"); len(some) != 1 || some[0].ID != want.ID {
		s.Errorf("%+v", some)
	}
	if n := len(s.deliveries("maria", "off")) + len(s.deliveries("otto", "his")); n != 0 {
		s.Errorf("%d deliveries for those who should not be told", n)
	}
	if w := s.get("maria", "all"); w.Waiting != 2 {
		s.Errorf("%d wait", w.Waiting)
	}
	s.must(s.Store.RemoveWebhook(s.Context(), "maria", "all"))
	if _, err := s.Store.Deliveries(s.Context(), "maria", "all", 0, 10); !errors.Is(err, notify.ErrNotFound) {
		s.Errorf("deliveries of a removed webhook: %v", err)
	}
	s.add(hook("maria", "all"))
	if left := s.deliveries("maria", "all"); len(left) != 0 {
		s.Errorf("a webhook inherited %d deliveries", len(left))
	}
}

func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

func (s *suite) refusedAppends() {
	s.add(hook("maria", "a"))
	s.create("maria", "one")
	row := session.Row{ID: "one", Owner: "maria", CreatedAt: Noon, UpdatedAt: Noon}
	late := session.Batch{ID: "one", Events: []session.Event{{Number: 1, At: Noon, Payload: session.Created{Owner: "maria"}}}, Row: row,
		News: []session.News{{Kind: session.NewsFinished, Number: 1, At: Noon}}}
	if err := s.Log.Append(s.Context(), late); !errors.Is(err, session.ErrConflict) {
		s.Fatal(err)
	}
	if got := s.deliveries("maria", "a"); len(got) != 1 {
		s.Errorf("a refused append is told of: %+v", got)
	}
}

// take is Next, which must find something.
func (s *suite) take(webhook string, now time.Time) (notify.Webhook, notify.Delivery) {
	s.Helper()
	w, d, found, err := s.Store.Next(s.Context(), webhook, now)
	s.must(err)
	if !found {
		s.Fatalf("nothing is due for %s", webhook)
	}
	return w, d
}

// done settles a delivery as it should be.
func (s *suite) done(w notify.Webhook, d notify.Delivery) {
	s.Helper()
	d.State, d.NextAt, d.Attempts, d.LastAt, d.Status, d.Took = notify.Delivered, time.Time{}, d.Attempts+1, Noon, 200, time.Millisecond
	w.Health = notify.Health{}
	s.must(s.Store.Settle(s.Context(), w, d))
}

func (s *suite) order() {
	s.add(hook("maria", "a"))
	for i := range 3 {
		s.now = Noon.Add(time.Duration(i) * time.Second)
		s.create("maria", session.ID(fmt.Sprint("s", i)))
	}
	s.wantDue(Noon.Add(-1*time.Second), "", Noon)
	now := Noon.Add(time.Minute)
	s.wantDue(now, "maria/a", time.Time{})
	for i := range 3 {
		w, d := s.take("a", now)
		if want := session.ID(fmt.Sprint("s", i)); d.Session != want {
			s.Errorf("got %s, want %s", d.Session, want)
		}
		s.done(w, d)
	}
	s.wantDue(now, "", time.Time{})
	if _, _, found, err := s.Store.Next(s.Context(), "a", now); found || err != nil {
		s.Error("something is left", err)
	}
}

func (s *suite) settling() {
	s.add(hook("maria", "a"))
	s.create("maria", "one")
	s.now = Noon.Add(time.Second)
	s.create("maria", "two")
	w, d := s.take("a", Noon)
	d.Attempts, d.LastAt, d.NextAt, d.Status, d.Error, d.Took = 1, Noon, Noon.Add(time.Hour), 503, "away", 3*time.Millisecond
	w.Health = notify.Health{Failures: 1, FailingSince: Noon, QuietUntil: Noon.Add(time.Minute)}
	s.must(s.Store.Settle(s.Context(), w, d))
	if got := s.deliveries("maria", "a"); !reflect.DeepEqual(got[0], d) {
		s.Errorf("got  %+v\nwant %+v", got[0], d)
	}
	s.same(s.get("maria", "a"), w)

	// The second one goes first now, when the receiver has had its rest.
	s.wantDue(Noon.Add(time.Second), "", Noon.Add(time.Minute))
	now := Noon.Add(time.Minute)
	s.wantDue(now, "maria/a", time.Time{})
	w, d = s.take("a", now)
	if d.Session != "two" {
		s.Errorf("got %s", d.Session)
	}
	s.done(w, d)
	s.wantDue(now, "", Noon.Add(time.Hour))

	w, d = s.take("a", Noon.Add(time.Hour))
	d.State, d.NextAt = notify.GivenUp, time.Time{}
	w.Enabled, w.Health.Disabled = false, "gone"
	s.must(s.Store.Settle(s.Context(), w, d))
	if got := s.get("maria", "a"); got.Enabled || got.Health.Disabled != "gone" || got.Waiting != 0 {
		s.Errorf("%+v", got)
	}
	s.must(s.Store.RemoveWebhook(s.Context(), "maria", "a"))
	s.must(s.Store.Settle(s.Context(), w, d)) // an attempt may outlive its webhook
}

func (s *suite) settlingOldState() {
	s.add(hook("maria", "a"))
	s.create("maria", "one")
	w, d := s.take("a", Noon)
	mended, err := s.Store.ChangeWebhook(s.Context(), "maria", "a", Noon, func(w *notify.Webhook) error { w.Sealed = []byte("new address"); return nil })
	s.must(err)
	w.Enabled, w.Health.Disabled = false, "gone"
	d.State, d.NextAt, d.Attempts = notify.GivenUp, time.Time{}, 1
	s.must(s.Store.Settle(s.Context(), w, d))
	s.same(s.get("maria", "a"), mended)
	if got := s.deliveries("maria", "a"); got[0].State != notify.GivenUp {
		s.Errorf("%+v", got)
	}
}

// What is queued for a webhook that must be left alone does not make it due.
func (s *suite) quiet() {
	until := Noon.Add(time.Hour)
	w := hook("maria", "a")
	w.Health = notify.Health{Failures: 1, FailingSince: Noon, QuietUntil: until}
	s.add(w)
	s.create("maria", "one")
	s.wantDue(Noon.Add(time.Minute), "", until)
	s.wantDue(until, "maria/a", time.Time{})
	_, err := s.Store.ChangeWebhook(s.Context(), "maria", "a", Noon, func(w *notify.Webhook) error { w.Health = notify.Health{}; return nil })
	s.must(err)
	s.wantDue(Noon, "maria/a", time.Time{})

	// The same for a delivery that was to be tried later.
	got, d := s.take("a", Noon)
	d.NextAt, got.Health = until, w.Health
	s.must(s.Store.Settle(s.Context(), got, d))
	s.wantDue(Noon, "", until)
	_, err = s.Store.ChangeWebhook(s.Context(), "maria", "a", Noon, func(w *notify.Webhook) error { w.Health = notify.Health{}; return nil })
	s.must(err)
	s.wantDue(Noon, "maria/a", time.Time{})
}

func (s *suite) disabledUsers() {
	s.add(hook("maria", "a"))
	s.add(hook("otto", "b"))
	s.create("maria", "one")
	s.create("otto", "two")
	s.DisableUser("maria")
	s.wantDue(Noon, "otto/b", time.Time{})
}

func (s *suite) testsAndRetries() {
	ctx := s.Context()
	s.add(hook("maria", "a"))
	test := notify.Delivery{ID: "msg_test_1", Webhook: "a", Type: "webhook.test", Body: []byte("{}"), CreatedAt: Noon, State: notify.Waiting, NextAt: Noon}
	for user, want := range map[string]error{"otto": notify.ErrNotFound, "maria": nil} {
		if _, err := s.Store.Queue(ctx, user, test); !errors.Is(err, want) {
			s.Fatalf("%s: %v", user, err)
		}
	}
	s.wantDue(Noon, "maria/a", time.Time{})
	w, d := s.take("a", Noon)
	s.done(w, d)
	drain(s.Store.Added())
	later := Noon.Add(time.Hour)
	d, err := s.Store.Requeue(ctx, "maria", "a", test.ID, later)
	s.must(err)
	if d.State != notify.Waiting || d.Attempts != 0 || !d.NextAt.Equal(later) || d.Seq != 1 || d.ID != test.ID {
		s.Errorf("%+v", d)
	}
	select {
	case <-s.Store.Added():
	default:
		s.Error("no signal that something was added")
	}
	s.wantDue(later, "maria/a", time.Time{})
	for _, who := range [][3]string{{"otto", "a", test.ID}, {"maria", "a", "none"}, {"maria", "none", test.ID}} {
		if _, err := s.Store.Requeue(ctx, who[0], who[1], who[2], later); !errors.Is(err, notify.ErrNotFound) {
			s.Errorf("%v: %v", who, err)
		}
	}
	_, err = s.Store.ChangeWebhook(ctx, "maria", "a", later, func(w *notify.Webhook) error { w.Enabled = false; return nil })
	s.must(err)
	s.wantDue(later, "", time.Time{})
	test.ID = "msg_test_2"
	if _, err := s.Store.Queue(ctx, "maria", test); !errors.Is(err, notify.ErrDisabled) {
		s.Errorf("a test of a disabled webhook: %v", err)
	}
	if _, err := s.Store.Requeue(ctx, "maria", "a", "msg_test_1", later); !errors.Is(err, notify.ErrDisabled) {
		s.Errorf("a retry of a disabled webhook: %v", err)
	}
}

func (s *suite) pages() {
	s.add(hook("maria", "a"))
	for i := range 5 {
		s.create("maria", session.ID(fmt.Sprint("s", i)))
	}
	var seen []string
	for before := int64(0); ; {
		page, err := s.Store.Deliveries(s.Context(), "maria", "a", before, 2)
		s.must(err)
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			seen, before = append(seen, string(d.Session)), d.Seq
		}
	}
	if got := strings.Join(seen, " "); got != "s4 s3 s2 s1 s0" {
		s.Errorf("got %q", got)
	}
	if _, err := s.Store.Deliveries(s.Context(), "otto", "a", 0, 2); !errors.Is(err, notify.ErrNotFound) {
		s.Errorf("another user's: %v", err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := s.Store.Deliveries(ctx, "maria", "a", 0, 2); err == nil {
		s.Error("a request that was given up was answered")
	}
}

func (s *suite) trim() {
	s.add(hook("maria", "a"))
	for i := range 3 {
		s.now = Noon.Add(time.Duration(i) * 24 * time.Hour)
		s.create("maria", session.ID(fmt.Sprint("s", i)))
	}
	s.must(s.Store.Trim(s.Context(), Noon.Add(time.Hour)))
	if got := s.deliveries("maria", "a"); len(got) != 2 || got[0].Session != "s1" {
		s.Errorf("%+v", got)
	}
	if w := s.get("maria", "a"); w.Waiting != 2 {
		s.Errorf("%d wait", w.Waiting)
	}
	s.wantDue(Noon, "", Noon.Add(24*time.Hour))
	s.must(s.Store.Trim(s.Context(), Noon.Add(100*24*time.Hour)))
	s.wantDue(Noon.Add(1000*time.Hour), "", time.Time{})
}
