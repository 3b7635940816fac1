package session_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
)

// Short names for what was lived through elsewhere.
var (
	theySaid     = session.Imported{Said: &said}
	theyAnswered = session.Imported{Answered: &session.ModelAnswered{Text: "ok"}}
	theyCalled   = session.Imported{Answered: &session.ModelAnswered{ToolCalls: twoCalls.ToolCalls}}
	theyGotA     = session.Imported{Returned: &session.ToolReturned{ID: "a"}}
	theyGotB     = session.Imported{Returned: &session.ToolReturned{ID: "b"}}
)

func TestCheckImported(t *testing.T) {
	past := payloads{created, theySaid, theyCalled} // numbers 1, 2, 3
	double := session.Imported{Answered: &session.ModelAnswered{ToolCalls: []session.ToolCall{{ID: "x"}, {ID: "x"}}}}
	condensed := func(from, to int64) session.Imported {
		return session.Imported{Condensed: &session.Condensed{From: from, To: to}}
	}
	for _, r := range []rule{
		{"what is taken over comes before all that is done here", owned, theySaid},
		{"what is taken over comes before all that is done here", payloads{created, stopped}, theySaid},
		{"what is taken over comes before all that is done here", payloads{created, stopped, session.StartRequested{}}, theySaid},
		{"every tool call has its result before the model answers again", past, theyAnswered},
		{"every tool call has its result before the model answers again", with(past, theyGotA), theyCalled},
		{"", with(past, theyGotA, theyGotB), theyAnswered},
		{"the calls of an answer have ids of their own", payloads{created}, double},
		{"a tool call has exactly one result", payloads{created}, theyGotA},
		{"a tool call has exactly one result", with(past, theyGotA), theyGotA},
		{"a tool call has exactly one result", past, session.ToolReturned{ID: "a", Cause: 3}},
		{"every tool call has its result first", past, stopped},
		{"", with(past, theyGotB, theyGotA), stopped},
		{"a tool call is not separated from its result", with(past, theyGotA, theyGotB), condensed(2, 4)},
		{"a tool call is not separated from its result", past, condensed(1, 3)},
		{"", with(past, theyGotA, theyGotB), condensed(2, 5)},
		{"", past, session.Imported{Told: &session.Nudged{Text: "by the way"}}},
	} {
		err := given(t, r.stage).Check(r.next)
		if r.breaks == "" && err != nil || r.breaks != "" && (!errors.Is(err, session.ErrRefused) || !strings.HasSuffix(err.Error(), ": "+r.breaks)) {
			t.Errorf("after %d events: %v; wanted %q", len(r.stage), err, r.breaks)
		}
	}
}

// Of all that was said elsewhere nothing is to be answered here, and what it cost is known.
func TestImport(t *testing.T) {
	day := time.Date(2025, 10, 1, 10, 0, 0, 0, time.UTC)
	before := session.Totals{Cost: 7, Input: 3, Model: "m"}
	events := []session.Event{{At: day.Add(time.Hour), Payload: session.Created{Owner: "maria", Before: before}}}
	for i := range 200 {
		events = append(events, session.Event{At: day.Add(time.Duration(i) * time.Minute), Payload: theySaid})
	}
	if _, _, err := session.Import("x", events); !errors.Is(err, session.ErrRefused) {
		t.Errorf("a log that wants a loop: %v", err)
	}
	events = append(events, session.Event{At: day.Add(24 * time.Hour), Payload: stopped})
	batches, st, err := session.Import("x", events)
	if err != nil {
		t.Fatal(err)
	}
	if st.Wants() || st.Pending() || st.Status() != session.Halted || st.Totals != before || st.Shown != 201 || st.Last != 202 ||
		!st.CreatedAt.Equal(day.Add(time.Hour)) || !st.UpdatedAt.Equal(day.Add(24*time.Hour)) {
		t.Errorf("%+v", st)
	}
	var all []session.Event
	for _, b := range batches {
		if b.After != int64(len(all)) || b.News != nil || b.Charge != (session.Charge{}) || len(b.Events) > 64 {
			t.Errorf("batch after %d with %d events: %+v %+v", b.After, len(b.Events), b.News, b.Charge)
		}
		all = append(all, b.Events...)
	}
	if len(batches) < 4 || len(all) != 202 || !reflect.DeepEqual(batches[len(batches)-1].Row, st.Row()) {
		t.Errorf("%d batches, %d events", len(batches), len(all))
	}
	for i, e := range all {
		if e.Number != int64(i)+1 || !e.At.Equal(events[i].At) {
			t.Fatalf("event %d is number %d at %v", i, e.Number, e.At)
		}
	}
	if _, _, err := session.Import("../x", events); err == nil {
		t.Error("a hostile id is taken")
	}
}

func TestMeans(t *testing.T) {
	for want, p := range map[session.Kind]session.Imported{
		session.KindUserSaid: theySaid, session.KindModelAnswered: theyAnswered, session.KindToolReturned: theyGotA,
		session.KindNudged: {Told: &session.Nudged{}}, session.KindCondensed: {Condensed: &session.Condensed{}},
	} {
		if got := p.Means(); got == nil || got.Kind() != want {
			t.Errorf("%s means %v", want, got)
		}
	}
	if (session.Imported{}).Means() != nil {
		t.Error("nothing means something")
	}
}
