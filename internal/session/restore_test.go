package session_test

import (
	"errors"
	"testing"

	"deckhand/internal/session"
)

// A restore can be undone and redone, each to the state before, and not while the agent works.
func TestRestoreRules(t *testing.T) {
	t.Parallel()
	st := session.State{ID: "c1"}
	add := func(p session.Payload) {
		t.Helper()
		if err := st.Check(p); err != nil {
			t.Fatal(err)
		}
		st = st.Apply(session.Event{Number: st.Last + 1, Payload: p})
	}
	add(session.Created{Owner: "ann"})
	add(session.Claimed{By: "m"})
	add(session.Checkpointed{Checkpoint: 1, UpTo: 1})
	for _, action := range []session.RestoreAction{session.RestoreUndo, session.RestoreRedo} {
		if _, err := st.MayRestore(action); !errors.Is(err, session.ErrRefused) {
			t.Errorf("%s of nothing: %v", action, err)
		}
	}
	if got, err := st.Checkpointed(session.Checkpointed{Checkpoint: 1}); got != nil || err != nil {
		t.Errorf("a checkpoint is recorded twice: %v, %v", got, err)
	}
	restore := func(action session.RestoreAction, before int) {
		t.Helper()
		out, err := st.Restore(session.Restored{Action: action, Point: 1, Files: true, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		add(out[0])
	}
	top := func(action session.RestoreAction, want int) {
		t.Helper()
		if got, err := st.MayRestore(action); err != nil || got.Before != want {
			t.Errorf("%s goes to %d (%v), want %d", action, got.Before, err, want)
		}
	}
	restore(session.RestorePoint, 2)
	restore(session.RestorePoint, 3)
	top(session.RestoreUndo, 3)
	restore(session.RestoreUndo, 4)
	top(session.RestoreUndo, 2)
	top(session.RestoreRedo, 4)
	restore(session.RestoreRedo, 5)
	top(session.RestoreUndo, 5)
	if len(st.Redo) != 0 || st.Checkpoint != 5 {
		t.Errorf("%+v, %d", st.Redo, st.Checkpoint)
	}
	restore(session.RestoreUndo, 6)
	restore(session.RestorePoint, 7)
	if len(st.Redo) != 0 {
		t.Error("a new restore does not end what could be redone")
	}
	add(session.UserSaid{Text: "go"})
	add(session.TurnBegan{})
	if _, err := st.MayRestore(session.RestorePoint); !errors.Is(err, session.ErrRefused) {
		t.Errorf("while the agent works: %v", err)
	}
	for _, wrong := range []session.Restored{{Point: 1}, {Point: 99, Files: true}, {Files: true}} {
		if st.Check(wrong) == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}
