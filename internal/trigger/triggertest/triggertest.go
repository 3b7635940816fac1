// Package triggertest is the suite that every store of integrations must pass:
// those it keeps, what comes for them, and which conversations their issues have.
package triggertest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"deckhand/internal/queue"
	"deckhand/internal/session"
	"deckhand/internal/trigger"
)

// Rig is a new store.
type Rig struct {
	Store interface {
		trigger.Store
		trigger.Inbox
	}
	// AddUser makes a user known, and DisableUser locks one out.
	AddUser, DisableUser func(name string)
}

// Noon is when the suite begins.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Run runs the suite. open makes a new, empty store.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	for name, test := range map[string]func(*suite){
		"integrations":   (*suite).integrations,
		"at most twenty": (*suite).atMostTwenty,
		"changes":        (*suite).changes,
		"listening":      (*suite).listening,
		"recording":      (*suite).recording,
		"due":            (*suite).due,
		"settling":       (*suite).settling,
		"threads":        (*suite).threads,
		"what is kept":   (*suite).kept,
		"pages":          (*suite).pages,
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{Rig: open(t), T: t}
			s.AddUser("maria")
			s.AddUser("otto")
			test(s)
		})
	}
}

type suite struct {
	Rig
	*testing.T
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// equal compares two values.
func (s *suite) equal(got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// one is an integration with a field of every kind set.
func one(user, id string) trigger.Integration {
	return trigger.Integration{ID: id, User: user, Provider: "gitea", Host: "git.example.org", Mention: "@deckhand", Label: "deckhand", Repositories: []string{"a/b", "c/d"},
		AllowedUsers: []string{"ada", "*"}, Enabled: true, Sealed: []byte("sealed " + id), CreatedAt: Noon, ChangedAt: Noon}
}

// arrival is a delivery with a field of every kind set.
func arrival(integration, id string) trigger.Delivery {
	return trigger.Delivery{Integration: integration, ID: id, Print: "print " + id, Event: "issue_comment created", Thread: trigger.Thread{Repository: "a/b", Pull: true, Number: 7},
		Actor: "ada", CreatedAt: Noon, State: trigger.Waiting, Task: []byte(`{"text":"x"}`), NextAt: Noon}
}

func (s *suite) add(ins ...trigger.Integration) {
	s.Helper()
	for _, in := range ins {
		s.must(s.Store.AddIntegration(s.Context(), in))
	}
}

func (s *suite) record(d trigger.Delivery, want bool) {
	s.Helper()
	fresh, err := s.Store.Record(s.Context(), d)
	s.must(err)
	if fresh != want {
		s.Errorf("%s is new: %t", d.ID, fresh)
	}
}

func (s *suite) list(user, integration string) []trigger.Delivery {
	s.Helper()
	found, err := s.Store.Deliveries(s.Context(), user, integration, 0, 5000)
	s.must(err)
	return found
}

func (s *suite) integrations() {
	a, b := one("maria", "a"), one("maria", "b")
	b.CreatedAt, b.Enabled, b.Repositories = Noon.Add(-time.Second), false, nil
	s.add(a, b, one("otto", "c"))
	found, err := s.Store.Integrations(s.Context(), "maria")
	s.must(err)
	s.equal(found, []trigger.Integration{b, a})
	got, err := s.Store.Integration(s.Context(), "b")
	s.must(err)
	s.equal(got, b)
	if err := s.Store.RemoveIntegration(s.Context(), "otto", "a"); !errors.Is(err, trigger.ErrNotFound) {
		s.Errorf("another's: %v", err)
	}
	s.record(arrival("a", "1"), true)
	s.must(s.Store.RemoveIntegration(s.Context(), "maria", "a"))
	if _, err := s.Store.Integration(s.Context(), "a"); !errors.Is(err, trigger.ErrNotFound) {
		s.Errorf("it is still there: %v", err)
	}
	if due, _ := s.lanes(Noon, 10); len(due) != 0 {
		s.Errorf("what came for it is still due: %v", due)
	}
	s.record(arrival("a", "2"), false) // the integration is gone
}

func (s *suite) atMostTwenty() {
	for i := range trigger.MaxIntegrations {
		s.add(one("maria", fmt.Sprint(i)))
	}
	if err := s.Store.AddIntegration(s.Context(), one("maria", "x")); !errors.Is(err, trigger.ErrTooMany) {
		s.Errorf("got %v", err)
	}
	s.add(one("otto", "y"))
}

func (s *suite) changes() {
	s.add(one("maria", "a"))
	want := one("maria", "a")
	want.Host, want.Mention, want.Label, want.Repositories, want.AllowedUsers, want.Enabled, want.Sealed = "h", "@x", "", nil, []string{"bob"}, false, []byte("new")
	want.ChangedAt = Noon.Add(time.Microsecond)
	got, err := s.Store.ChangeIntegration(s.Context(), "maria", "a", Noon.Add(-time.Hour), func(in *trigger.Integration) error { *in = want; return nil })
	s.must(err)
	s.equal(got, want) // its time grew although the clock did not
	found, err := s.Store.Integrations(s.Context(), "maria")
	s.must(err)
	s.equal(found, []trigger.Integration{want})
	boom := errors.New("boom")
	for user, expect := range map[string]error{"maria": boom, "otto": trigger.ErrNotFound} {
		_, err := s.Store.ChangeIntegration(s.Context(), user, "a", Noon, func(in *trigger.Integration) error { in.Host = "z"; return boom })
		if !errors.Is(err, expect) {
			s.Errorf("%s: %v", user, err)
		}
	}
	found, err = s.Store.Integrations(s.Context(), "maria")
	s.must(err)
	s.equal(found, []trigger.Integration{want})
}

func (s *suite) listening() {
	off, other := one("maria", "b"), one("maria", "c")
	off.Enabled, other.Provider = false, "github"
	s.add(one("maria", "a"), off, other, one("otto", "d"))
	s.heard("gitea", "", "a", "d")
	s.heard("gitea", "d", "d")
	s.heard("gitea", "b")
	s.heard("github", "", "c")
	s.heard("github", "a")
	s.DisableUser("otto")
	s.heard("gitea", "", "a")
}

func (s *suite) heard(provider, id string, want ...string) {
	s.Helper()
	found, err := s.Store.Listening(s.Context(), provider, id)
	s.must(err)
	var got []string
	for _, in := range found {
		got = append(got, in.ID)
	}
	s.equal(got, want)
}

func (s *suite) recording() {
	s.add(one("maria", "a"), one("maria", "b"))
	d := arrival("a", "1")
	s.record(d, true)
	d.Seq = 1
	s.equal(s.list("maria", "a"), []trigger.Delivery{d})
	again := arrival("a", "1")
	again.Print = "another"
	s.record(again, false)
	again.ID, again.Print = "2", "print 1" // the same content under another name
	s.record(again, false)
	s.record(arrival("b", "1"), true)
	s.equal(len(s.list("maria", "a")), 1)
	if _, err := s.Store.Deliveries(s.Context(), "otto", "a", 0, 10); !errors.Is(err, trigger.ErrNotFound) {
		s.Errorf("another's: %v", err)
	}
}

// lanes are those in which something is due, and when there will be another.
func (s *suite) lanes(now time.Time, limit int) (due []queue.Lane, next time.Time) {
	s.Helper()
	s.must(s.Store.View(s.Context(), func(tx queue.Tx) (err error) {
		due, next, err = tx.Ready(now, limit)
		return err
	}))
	return due, next
}

func (s *suite) due() {
	s.add(one("maria", "a"), one("otto", "b"))
	early, late, never := arrival("a", "early"), arrival("a", "late"), arrival("a", "never")
	late.NextAt, never.NextAt = Noon.Add(time.Hour), time.Time{}
	late.Number, never.Number = 8, 9
	s.record(late, true)
	s.record(never, true)
	s.record(early, true)
	s.record(arrival("b", "other"), true)
	second := arrival("a", "second") // of the same issue
	second.NextAt = Noon.Add(time.Second)
	s.record(second, true)
	names := func(now time.Time, limit int) (got []string, next time.Time) {
		s.Helper()
		lanes, next := s.lanes(now, limit)
		for _, l := range lanes {
			d, found, err := s.Store.Next(s.Context(), l.Name, now)
			s.must(err)
			if !found {
				s.Fatalf("nothing is due in %s", l.Name)
			}
			got = append(got, d.ID)
		}
		return got, next
	}
	got, next := names(Noon, 10)
	s.equal(got, []string{"early", "other"})
	s.equal(next, Noon.Add(time.Hour))
	s.DisableUser("otto")
	got, next = names(Noon.Add(time.Hour), 10)
	s.equal(got, []string{"early", "late"})
	s.equal(next, time.Time{})
	got, _ = names(Noon.Add(time.Hour), 1)
	s.equal(got, []string{"early"})
	got, next = names(Noon.Add(-time.Second), 10)
	s.equal(got, []string(nil))
	s.equal(next, Noon)
}

func (s *suite) settling() {
	s.add(one("maria", "a"))
	s.record(arrival("a", "1"), true)
	s.record(arrival("a", "2"), true)
	d := s.list("maria", "a")[1]
	d.State, d.Reason, d.Task, d.Session, d.Said, d.Posting, d.Attempts, d.NextAt, d.DoneAt = trigger.Working, "no", nil, "s", 3, 9, 2, time.Time{}, Noon
	s.must(s.Store.Settle(s.Context(), d))
	s.equal(s.list("maria", "a")[1], d)
	for _, id := range []session.ID{"s", ""} {
		found, err := s.Store.AtWork(s.Context(), id)
		s.must(err)
		s.equal(found, []trigger.Delivery{d})
	}
	if found, err := s.Store.AtWork(s.Context(), "t"); err != nil || len(found) != 0 {
		s.Errorf("another session: %v %v", found, err)
	}
	d.State = trigger.Answered
	gone := d
	gone.ID = "gone"
	s.must(s.Store.Settle(s.Context(), d, gone))
	if found, err := s.Store.AtWork(s.Context(), ""); err != nil || len(found) != 0 {
		s.Errorf("it is still at work: %v %v", found, err)
	}
	s.equal(len(s.list("maria", "a")), 2)
}

func (s *suite) threads() {
	s.add(one("maria", "a"), one("otto", "b"))
	d := arrival("a", "1")
	s.record(d, true)
	of := func(integration string, t trigger.Thread, want session.ID) {
		s.Helper()
		got, err := s.Store.SessionOf(s.Context(), integration, t)
		s.must(err)
		s.equal(got, want)
	}
	of("a", d.Thread, "")
	d = s.list("maria", "a")[0]
	d.State, d.Session = trigger.Ignored, "x"
	s.must(s.Store.Settle(s.Context(), d))
	of("a", d.Thread, "")
	for _, id := range []session.ID{"s", "t"} {
		d.State, d.Session = trigger.Working, id
		s.must(s.Store.Settle(s.Context(), d))
		of("a", d.Thread, id)
	}
	of("b", d.Thread, "")
	other := d.Thread
	other.Pull = false
	of("a", other, "")
	s.must(s.Store.RemoveIntegration(s.Context(), "maria", "a"))
	of("a", d.Thread, "")
}

func (s *suite) kept() {
	s.add(one("maria", "a"))
	old := Noon.Add(-trigger.KeptFor - time.Hour)
	for i := range 4 { // the first waits, the second is at work
		d := arrival("a", fmt.Sprint("old ", i))
		d.CreatedAt = old
		if i > 0 {
			d.NextAt, d.State = time.Time{}, trigger.Ignored
		}
		if i == 1 {
			d.State = trigger.Working
		}
		s.record(d, true)
	}
	var all sync.WaitGroup
	for i := range trigger.KeptDeliveries + 5 { // together they share the commits
		all.Go(func() {
			d := arrival("a", fmt.Sprint(i))
			d.NextAt, d.State = time.Time{}, trigger.Ignored
			if fresh, err := s.Store.Record(s.Context(), d); err != nil || !fresh {
				s.Errorf("%t, %v", fresh, err)
			}
		})
	}
	all.Wait()
	found := s.list("maria", "a")
	s.equal(len(found), trigger.KeptDeliveries+5+2) // none of the young ones is dropped
	s.equal(found[len(found)-1].ID, "old 0")
	s.equal(found[len(found)-2].ID, "old 1")
}

func (s *suite) pages() {
	s.add(one("maria", "a"))
	for i := range 5 {
		s.record(arrival("a", fmt.Sprint(i)), true)
	}
	found, err := s.Store.Deliveries(s.Context(), "maria", "a", 4, 2)
	s.must(err)
	if len(found) != 2 || found[0].Seq != 3 || found[1].Seq != 2 {
		s.Errorf("got %+v", found)
	}
	if found, err := s.Store.Deliveries(s.Context(), "maria", "a", 0, 0); err != nil || len(found) != 0 {
		s.Errorf("got %v, %v", found, err)
	}
}
