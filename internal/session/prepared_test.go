package session_test

import (
	"encoding/json"
	"testing"

	"deckhand/internal/session"
)

// A sandbox that outlived a stop is known to be up as soon as it is used again:
// calls that were begun in it must not be taken for calls that were not.
func TestSameSandboxAfterAStop(t *testing.T) {
	st := session.State{ID: "x"}
	handle := json.RawMessage(`{"id":"box"}`)
	do := func(rule func(session.State) ([]session.Payload, error)) {
		t.Helper()
		payloads, err := rule(st)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range payloads {
			st = st.Apply(session.Event{Number: st.Last + 1, Payload: p})
		}
	}
	open := func(h json.RawMessage) {
		do(func(s session.State) ([]session.Payload, error) { return s.Take("loop") })
		do(func(s session.State) ([]session.Payload, error) { return s.Prepared(s.Claim, session.WorkspaceReady{}) })
		do(func(s session.State) ([]session.Payload, error) {
			return s.Prepared(s.Claim, session.WorkspaceReady{Handle: h})
		})
	}
	do(func(s session.State) ([]session.Payload, error) { return s.Begin(session.Created{Owner: "ada"}, nil) })
	open(handle)
	do(func(s session.State) ([]session.Payload, error) { return s.Stop("") })
	if st.Up {
		t.Error("a stopped session is up")
	}
	do(session.State.Start)
	open(handle)
	if !st.Up {
		t.Error("the sandbox is used and not known to be up")
	}
	last := st.Last
	do(func(s session.State) ([]session.Payload, error) {
		return s.Prepared(s.Claim, session.WorkspaceReady{Handle: handle})
	})
	if st.Last != last {
		t.Error("it is recorded at every use")
	}
}
