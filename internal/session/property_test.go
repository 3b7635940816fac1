package session_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"deckhand/internal/session"
)

const theID = session.ID("a-session")

// world is one session, several processes that change it, and several loops of
// which at most one owns it. The others do not know that they lost it.
type world struct {
	log     *faulty
	procs   []*session.Sessions
	limited bool
	budget  session.Money
	loops   []*loop
	serial  int
	looks   int
	// script is how many steps the trajectory has, children the sessions that
	// loops asked for.
	script   int
	children []session.ID
	// returned is what the last Update gave back without an error.
	returned *session.State
}

// loop is what one agent loop believes.
type loop struct {
	name  string
	claim int64
	call  string
}

func newWorld(t *rapid.T) *world {
	w := &world{log: newFaulty(), limited: rapid.Bool().Draw(t, "limited"), budget: 60}
	for range 3 {
		// One process forgets at once, so that folding anew is exercised too.
		w.procs = append(w.procs, session.New(w.log, session.WithCache(len(w.procs))))
	}
	for i := range 3 {
		w.loops = append(w.loops, &loop{name: fmt.Sprintf("loop-%d", i)})
	}
	var first *session.UserSaid
	if rapid.Bool().Draw(t, "first") {
		first = &session.UserSaid{Text: "hello", Key: "first"}
	}
	c := session.Created{Owner: "maria", Repository: "octo/app"}
	switch rapid.SampledFrom([]string{"a replay", "a child", "", "", "a replay"}).Draw(t, "what") {
	case "a child": // it lives on what a parent gave it
		c.Parent, c.Grant, c.Granted = "parent", 40, true
	case "a replay":
		c.Replay, w.script = "[]", rapid.SampledFrom([]int{6, 8, 3, 1, 0}).Draw(t, "steps")
	}
	if _, err := w.procs[0].Create(context.Background(), theID, c, first); err != nil {
		t.Fatal(err)
	}
	return w
}

// name makes a new string.
func (w *world) name(prefix string) string {
	w.serial++
	return fmt.Sprintf("%s%d", prefix, w.serial)
}

// draw arms a fault for the next append, most of the time none.
func (w *world) draw(t *rapid.T) {
	var f fault
	switch rapid.SampledFrom([]string{"", "", "", "", "", "", "", "", "", "", "", "race", "refuse", "forget", "repeat", "read"}).Draw(t, "fault") {
	case "race":
		// The one who is faster is a person or another loop, in a process of its own.
		rule := rapid.SampledFrom([]func(session.State) ([]session.Payload, error){
			func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "in between"}) },
			func(s session.State) ([]session.Payload, error) { return s.Take("faster") },
			func(s session.State) ([]session.Payload, error) { return s.Stop("in between") },
			func(s session.State) ([]session.Payload, error) { return s.Pause() },
			func(s session.State) ([]session.Payload, error) {
				return []session.Payload{session.Noted{ID: "note"}}, nil
			},
		}).Draw(t, "faster")
		f.race = func() { _, _ = session.New(w.log).Update(context.Background(), theID, rule) }
	case "refuse":
		f.refuse = true
	case "forget":
		f.forget = true
	case "repeat":
		f.repeat = true
	case "read":
		f.read = true
	}
	w.log.fail(f)
}

// update makes one change in one of the processes and looks at how it ended.
func (w *world) update(t *rapid.T, ctx context.Context, rule func(session.State) ([]session.Payload, error)) (session.State, error) {
	proc := rapid.SampledFrom(w.procs).Draw(t, "process")
	w.draw(t)
	st, err := proc.Update(ctx, theID, rule)
	w.log.fail(fault{})
	var over *session.BudgetError
	switch {
	case err == nil:
		w.returned = &st
	case errors.Is(err, session.ErrCorrupt):
		t.Fatalf("a log that only Update wrote is called damaged: %v", err)
	case errors.Is(err, errStore), errors.Is(err, session.ErrRefused), errors.Is(err, session.ErrNotOwner),
		errors.Is(err, session.ErrDeleted), errors.Is(err, session.ErrDuplicate), errors.As(err, &over):
	default:
		t.Fatalf("unexpected: %v", err)
	}
	return st, err
}

// person makes an action of a rule that any user may request.
func (w *world) person(rule func(*rapid.T, session.State) ([]session.Payload, error)) func(*rapid.T) {
	return func(t *rapid.T) {
		// Draws must not depend on how often the rule is asked, so the rule draws none itself.
		_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return rule(t, s) })
	}
}

// check compares the raw log with the promises, and all ways to see the state with each other.
func (w *world) check(t *rapid.T) {
	events, authors := w.log.history(theID)
	a, err := audit(events, authors, limit(w.budget, w.limited))
	if err == nil && a.then != nil && a.keys[a.then.Key] == a.replay {
		err = errors.New("the message that waits for the replay came too early, or did not come")
	}
	if err != nil {
		for _, e := range events {
			t.Logf("%3d %-16s %+v (claim %d)", e.Number, e.Payload.Kind(), e.Payload, authors[e.Number])
		}
		t.Fatal(err)
	}
	want := w.log.refold(theID)
	if w.returned != nil && w.returned.Last == want.Last && !reflect.DeepEqual(*w.returned, want) && !want.Deleted {
		t.Fatalf("Update returned\n%+v\nthe log adds up to\n%+v", *w.returned, want)
	}
	w.looks++
	i := w.looks % len(w.procs) // they take turns: each must catch up with what the others did
	st, err := w.procs[i].Load(context.Background(), theID)
	if err != nil {
		t.Fatalf("process %d: %v", i, err)
	}
	if !want.Deleted && !reflect.DeepEqual(st, want) {
		t.Fatalf("process %d sees\n%+v\nthe log adds up to\n%+v", i, st, want)
	}
	w.compare(t, a, st)
	row, err := w.log.Row(context.Background(), theID)
	if err != nil || row.Status != a.status() || row.Wants != a.wants() || row.Last != a.last || row.Deleted != a.deleted {
		t.Fatalf("row %+v does not fit (%v)", row, err)
	}
}

func (w *world) compare(t *rapid.T, a *auditor, st session.State) {
	switch {
	case st.Last != a.last || st.Deleted != a.deleted:
		t.Fatalf("last %d deleted %v, want %d %v", st.Last, st.Deleted, a.last, a.deleted)
	case st.Status() != a.status():
		t.Fatalf("status %s, want %s", st.Status(), a.status())
	case st.Wants() != a.wants():
		t.Fatalf("wants %v, want %v: %+v", st.Wants(), a.wants(), st)
	case st.Pending() != a.pending():
		t.Fatalf("pending %v, want %v", st.Pending(), a.pending())
	}
	if a.deleted {
		return
	}
	if st.Totals.Cost != a.spent || st.Committed() != a.spent+a.reserved() || st.InTurn != a.inTurn || st.Paused != a.paused || st.Claim != a.claim {
		t.Fatalf("state %+v does not fit %+v", st, a)
	}
	if a.inTurn && st.Asks != a.asks || !slices.Equal(st.Allowed, a.allowed) {
		t.Fatalf("%d calls and %v allowed, want %d and %v", st.Asks, st.Allowed, a.asks, a.allowed)
	}
	if st.Agent == session.AgentPaused != a.paused {
		t.Fatalf("the agent is shown as %s, paused is %v", st.Agent, a.paused)
	}
}

func TestRandomInterleavings(t *testing.T) {
	seen, met := map[session.Kind]int{}, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range 3 { // three times rapid's usual length: a turn alone takes ten steps
			t.Repeat(w.actions())
		}
		events, _ := w.log.history(theID)
		for _, e := range events {
			seen[e.Payload.Kind()]++
		}
		a, _ := audit(events, nil, limit(w.budget, w.limited))
		for situation := range a.met {
			met[situation]++
		}
		w.forkAnywhere(t)
	})
	if testing.Short() {
		return // the few worlds of a short run do not get into everything
	}
	// A property over worlds in which nothing happens proves nothing.
	for _, p := range session.Payloads() {
		if k := p.Kind(); seen[k] == 0 && k != session.KindBriefed && k != session.KindImported {
			t.Errorf("no world had a %s event", k)
		}
	}
	t.Log(met)
	for _, situation := range situations {
		if met[situation] == 0 {
			t.Errorf("no world got into this: %s", situation)
		}
	}
}
