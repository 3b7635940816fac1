package session_test

import (
	"errors"
	"reflect"
	"testing"

	"deckhand/internal/session"
)

// A request is pending until it is carried out, given up, or the conversation is stopped.
func TestCompactIsPending(t *testing.T) {
	t.Parallel()
	ask := func(s session.State) ([]session.Payload, error) {
		return s.AskCompact(session.CompactAsked{Instructions: "keep names"})
	}
	for name, end := range map[string]session.Payload{
		"done":     session.Condensed{From: 1, To: 2, Summary: "…"},
		"given up": session.Noted{ID: session.NoteCompactFailed, Error: true},
		"stopped":  session.Stopped{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, out := follow(t, given(t, owned), ask)
			if st.Compact == nil || st.Compact.Instructions != "keep names" || len(out) == 0 {
				t.Fatalf("%+v", st.Compact)
			}
			if _, err := ask(st); !errors.Is(err, session.ErrRefused) {
				t.Errorf("a second request: %v", err)
			}
			if st, _ = follow(t, st, do(session.Noted{ID: "other"})); st.Compact == nil {
				t.Error("another notice ends the request")
			}
			if st, _ = follow(t, st, do(end)); st.Compact != nil {
				t.Error("still pending")
			}
		})
	}
	stopped, _ := follow(t, given(t, owned), stop)
	out, err := ask(stopped)
	if want := []session.Payload{session.StartRequested{}, session.CompactAsked{Instructions: "keep names"}}; err != nil || !reflect.DeepEqual(out, want) {
		t.Errorf("a stopped conversation: %v, %v", out, err)
	}
}
