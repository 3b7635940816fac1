package session_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// forkAnywhere copies a world's session at some of its events: whatever happened
// before, the copy obeys the rules, owes nothing, and can be spoken to.
func (w *world) forkAnywhere(t *rapid.T) {
	was := w.log.refold(theID)
	if was.Deleted {
		return
	}
	sessions := session.New(w.log.Log)
	for i := range 3 {
		n := rapid.Int64Range(1, was.Last).Draw(t, "fork at")
		id := session.ID(fmt.Sprintf("fork-%d", i))
		st, err := sessions.Fork(context.Background(), theID, id, session.Fork{Number: n, Workspace: was})
		if err != nil {
			t.Fatalf("at event %d of %d: %v", n, was.Last, err)
		}
		folded, err := session.Fold(context.Background(), w.log.Log, session.State{ID: id})
		if err != nil {
			t.Fatalf("at event %d of %d: %v", n, was.Last, err)
		}
		if !reflect.DeepEqual(folded, st) {
			t.Fatalf("at event %d: the copy is\n%+v\nits log adds up to\n%+v", n, st, folded)
		}
		switch f := st.Created.Forked; {
		case st.Wants() || st.Status() != session.Halted || st.Ask != nil || len(st.Open)+len(st.Grants)+len(st.Requests) > 0:
			t.Fatalf("at event %d something is left to be done: %+v", n, st)
		case st.Totals.Cost != 0 || st.Committed() != 0 || st.Limited:
			t.Fatalf("at event %d the copy owes something: %+v", n, st)
		case f == nil || f.From != theID || f.Number > n:
			t.Fatalf("at event %d: %+v", n, f)
		case len(st.Handle) > 0 || st.Created.Parent != "" || st.Replaying():
			t.Fatalf("at event %d the copy reaches into the original: %+v", n, st)
		case !reflect.DeepEqual(st.Checkout, was.Checkout) || !reflect.DeepEqual(st.SetUp, was.SetUp) || st.Egress.Mode != was.Egress.Mode || st.Overrides != was.Overrides:
			t.Fatalf("at event %d the copy has\n%+v, the original\n%+v", n, st, was)
		}
		st, err = sessions.Update(context.Background(), id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "go on"}) })
		if err != nil || !st.Wants() || !st.Pending() {
			t.Fatalf("at event %d the session cannot continue: %v", n, err)
		}
	}
	if now := w.log.refold(theID); !reflect.DeepEqual(now, was) {
		t.Fatal("the original has changed")
	}
}

// lived is a store with one session of the payloads, a second apart.
func lived(t *testing.T, stage payloads) (*memlog.Log, *session.Sessions) {
	t.Helper()
	log := memlog.New()
	st := session.State{ID: "a-session"}
	for i, p := range stage {
		e := session.Event{Number: int64(i) + 1, At: time.Unix(int64(i), 0).UTC(), Payload: p}
		if err := st.Check(p); err != nil {
			t.Fatalf("event %d: %v", i+1, err)
		}
		st = st.Apply(e)
		if err := log.Append(t.Context(), session.Batch{ID: st.ID, After: int64(i), Events: []session.Event{e}, Row: st.Row()}); err != nil {
			t.Fatal(err)
		}
	}
	return log, session.New(log, session.WithClock(func() time.Time { return time.Unix(1000, 0) }))
}

// The copy has the events under their numbers, and ends before a call that is open.
func TestForkCutsBeforeOpenCalls(t *testing.T) {
	all := with(running, returned("a", 7), callB, returned("b", 9),
		session.ModelAsked{Call: "n", Reserved: 10, UpTo: 10}, session.ModelAnswered{Call: "n", Text: "Done.", Cost: 7, Final: true},
		session.TurnEnded{UpTo: 10, State: session.AgentAwaitingUser})
	log, sessions := lived(t, all)
	for n, want := range map[int64]int64{0: 13, 1: 1, 2: 2, 4: 4, 5: 4, 6: 4, 7: 4, 8: 4, 9: 4, 10: 10, 11: 10, 12: 12, 13: 13, 99: 13} {
		id := session.ID(fmt.Sprint("copy-", n))
		st, err := sessions.Fork(t.Context(), "a-session", id, session.Fork{Number: n})
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		if st.Created.Forked.Number != want || st.Created.Forked.From != "a-session" {
			t.Errorf("%d: the copy ends with %+v, want %d", n, st.Created.Forked, want)
		}
		i := int64(0)
		for e, err := range log.Read(t.Context(), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if i++; i > 1 && i <= want && (e.Payload.Kind() != all[i-1].Kind() || e.At.Unix() != i-1) {
				t.Errorf("%d: event %d is %s at %v", n, i, e.Payload.Kind(), e.At)
			}
		}
		if row, err := log.Row(t.Context(), id); err != nil || row.CreatedAt.Unix() != 1000 || row.Totals.Cost != 0 || row.Title != "Conversation a-ses (copy)" {
			t.Errorf("%d: %+v %v", n, row, err)
		}
	}
}

// What was granted, proposed and limited in the original stays there.
func TestForkLeavesTheOriginalsAffairs(t *testing.T) {
	pull := session.RequestOpened{Provider: "github", Repository: "octo/app", Number: 7}
	stage := with(running, grant, pull, session.ToolReturned{ID: "a", Name: "bash", Cause: 7, Outcome: session.Cancelled}, stopped, session.Capped{Limit: 50})
	_, sessions := lived(t, with(payloads{session.Created{Owner: "maria", Parent: "above", Depth: 1, Grant: 60, Granted: true, MCP: []byte("sealed")}}, stage[1:]...))
	st, err := sessions.Fork(t.Context(), "a-session", "copy", session.Fork{Title: "Another way", Trigger: "gui", Fingerprint: "print", MCP: []byte("sealed anew")})
	if err != nil {
		t.Fatal(err)
	}
	c := st.Created
	if c.Parent != "" || c.Depth != 0 || c.Granted || c.Trigger != "gui" || c.Fingerprint != "print" || string(c.MCP) != "sealed anew" || c.Owner != "maria" {
		t.Errorf("%+v", c)
	}
	if len(st.Grants)+len(st.Requests) > 0 || st.Limited || st.Title != "Another way" || !st.Named {
		t.Errorf("%+v", st)
	}
	was, err := sessions.Load(t.Context(), "a-session")
	if err != nil || len(was.Grants) != 1 || len(was.Requests) != 1 {
		t.Errorf("%+v %v", was, err)
	}
	if _, err := sessions.Fork(t.Context(), "a-session", "copy", session.Fork{}); !errors.Is(err, session.ErrConflict) {
		t.Errorf("a copy in the place of another: %v", err)
	}
	if _, err := sessions.Fork(t.Context(), "nobody", "copy-2", session.Fork{}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a copy of nothing: %v", err)
	}
}

// A long log with long events is stored in pieces that can be read one by one.
func TestForkOfALongLog(t *testing.T) {
	stage := slices.Clone(fresh)
	for i := range 500 {
		stage = append(stage, session.UserSaid{Text: strings.Repeat("x", 20_000), Key: fmt.Sprint(i)})
	}
	log, _ := lived(t, stage)
	spy := &batches{Log: log}
	st, err := session.New(spy).Fork(t.Context(), "a-session", "copy", session.Fork{})
	if err != nil || st.Last != int64(len(stage))+2 {
		t.Fatalf("%d %v", st.Last, err)
	}
	news := 0
	for _, b := range spy.all {
		size := 0
		for _, e := range b.Events {
			text, _ := session.Encode(e.Payload)
			size += len(text)
		}
		if size > 300<<10 || len(b.Events) > 64 {
			t.Errorf("%d events of %d bytes in one batch", len(b.Events), size)
		}
		if b.Charge != (session.Charge{}) {
			t.Errorf("it is charged: %+v", b.Charge)
		}
		news += len(b.News)
	}
	if last := spy.all[len(spy.all)-1]; news != 1 || last.News[0].Kind != session.NewsCreated {
		t.Errorf("%d news", news)
	}
}

// batches remembers what is stored at once.
type batches struct {
	*memlog.Log
	all []session.Batch
}

func (b *batches) AppendAll(ctx context.Context, all []session.Batch) error {
	b.all = append(b.all, all...)
	return b.Log.AppendAll(ctx, all)
}

// What is chosen for a delegated session wins over what was chosen above it.
func TestOverrides(t *testing.T) {
	above := session.Overridden{Model: "a/b", Budget: 3, Limited: true}
	for _, c := range []struct{ own, want session.Overridden }{
		{session.Overridden{}, above},
		{session.Overridden{Model: "c/d"}, session.Overridden{Model: "c/d", Budget: 3, Limited: true}},
		{session.Overridden{Limited: true}, session.Overridden{Model: "a/b", Limited: true}},
	} {
		if got := c.own.Over(above); got != c.want {
			t.Errorf("%+v: %+v", c.own, got)
		}
	}
	st := given(t, with(running, above))
	if out, err := st.Override(above); err != nil || len(out) > 0 {
		t.Errorf("the same again: %v %v", out, err)
	}
	if out, err := st.Override(session.Overridden{}); err != nil || len(out) != 1 {
		t.Errorf("back to the settings: %v %v", out, err)
	}
	if _, err := (session.State{}).Override(above); !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
}
