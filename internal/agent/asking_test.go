package agent_test

import (
	"strings"
	"sync"
	"testing"

	"deckhand/internal/session"
)

// appends records the kinds of events in each append.
func appends(r *rig) (kinds func() []string) {
	var mu sync.Mutex
	var got []string
	record := func(b session.Batch) error {
		var names []string
		for _, e := range b.Events {
			names = append(names, string(e.Payload.Kind()))
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.Join(names, " "))
		return nil
	}
	r.fault.Store(&record)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// The last result of an answer and the next model call are one append.
func TestResultAndNextCallAreOneAppend(t *testing.T) {
	r, _, _, goOn := held(t, false, calls(called("a", "say", `{"text":"one"}`), called("b", "say", `{"text":"two"}`)),
		calls(called("c", "say", `{"text":"three"}`)), done("ok"))
	close(goOn)
	kinds := appends(r.rig)
	id := r.create("go")
	r.until(id, "the end", finished)
	var results []string
	for _, k := range kinds() {
		if strings.HasPrefix(k, "tool_returned") {
			results = append(results, k)
		}
	}
	if got, want := strings.Join(results, ", "), "tool_returned, tool_returned model_asked, tool_returned model_asked, tool_returned"; got != want {
		t.Errorf("appends with results: %s, want %s", got, want)
	}
	if asks := all[session.ModelAsked](r.rig, id); len(asks) != 3 || len(r.server.Asked()) != 3 {
		t.Errorf("%d calls recorded, %d made", len(asks), len(r.server.Asked()))
	}
}

// A message that arrives while a tool runs is read before the next model call.
func TestMessageDuringACallIsReadFirst(t *testing.T) {
	r, _, running, goOn := held(t, false, calls(called("a", "say", `{"text":"first"}`)), done("ok"))
	kinds := appends(r.rig)
	id := r.create("go")
	<-running
	st := r.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "and this"}) })
	close(goOn)
	r.until(id, "the end", finished)
	for _, k := range kinds() {
		if strings.HasPrefix(k, "tool_returned model_asked") {
			t.Errorf("the model was called in one append with the result: %s", k)
		}
	}
	if asks := all[session.ModelAsked](r.rig, id); len(asks) != 2 || asks[1].UpTo <= st.Last || !strings.Contains(texts(r.last()), "and this") {
		t.Errorf("calls: %+v; the model was shown %s", asks, texts(r.last()))
	}
}
