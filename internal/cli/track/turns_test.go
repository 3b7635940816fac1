package track_test

import (
	"testing"

	"deckhand/internal/cli/track"
	"deckhand/internal/session"
)

// A stop that somebody else caused is explained.
func TestStopReason(t *testing.T) {
	t.Parallel()
	var a track.Agent
	a.Remember(session.Stopped{Reason: "ended by an admin"})
	if got := a.Where(); got != "stopped: ended by an admin" {
		t.Error(got)
	}
	a.Remember(session.TurnBegan{})
	if got := a.Where(); got != "working" {
		t.Error(got)
	}
}

// Each undo goes one turn further back, each redo one forward, and a message in between ends what can be redone.
func TestTurns(t *testing.T) {
	t.Parallel()
	var turns track.Turns
	n := int64(1)
	add := func(p session.Payload) {
		n++
		turns.Remember(session.Event{Number: n, Payload: p})
	}
	is := func(number int64, text string, redoes bool) {
		t.Helper()
		gotNumber, gotText, _ := turns.Last()
		if gotNumber != number || gotText != text || turns.Redoes() != redoes {
			t.Fatalf("%d %q %v, want %d %q %v", gotNumber, gotText, turns.Redoes(), number, text, redoes)
		}
	}
	is(0, "", false)
	add(session.UserSaid{Text: "one"}) // 2
	add(session.TurnEnded{UpTo: 2})
	add(session.UserSaid{Text: "two"}) // 4
	add(session.UserSaid{Text: "and"}) // 5
	is(4, "two\n\nand", false)
	add(session.UserSaid{Text: "late"}) // 6
	add(session.TurnEnded{UpTo: 5})
	is(6, "late", false)
	add(session.Withdrawn{Messages: []int64{6}})
	is(4, "two\n\nand", false)
	undo := func(point int64) {
		add(session.Restored{Action: session.RestorePoint, Point: point, Files: true, Conversation: true})
	}
	undo(3)
	is(2, "one", true)
	undo(1)
	is(0, "", true)
	add(session.Restored{Action: session.RestoreUndo, Point: 1, Files: true, Conversation: true})
	is(2, "one", true)
	add(session.Restored{Action: session.RestoreUndo, Point: 3, Files: true, Conversation: true})
	is(4, "two\n\nand", false)
	undo(3)
	add(session.UserSaid{Text: "another way"})
	is(n, "another way", false)
	add(session.Restored{Action: session.RestorePoint, Point: 2, Files: true})
	is(n-1, "another way", false)
}
