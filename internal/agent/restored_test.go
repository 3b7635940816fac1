package agent

import (
	"strings"
	"testing"

	"deckhand/internal/session"
)

// A restored conversation ends at its point for the model, until that is undone.
func TestRestoredConversation(t *testing.T) {
	t.Parallel()
	tr := newTranscript("c1")
	number := int64(0)
	add := func(p session.Payload) int64 {
		number++
		tr.add(session.Event{Number: number, Payload: p})
		return number
	}
	seen := func() string {
		var out []string
		for i, m := range tr.shown {
			if m.Text != tr.messages[i].Text {
				t.Errorf("message %d is shown as %q and not as %q", i, m.Text, tr.messages[i].Text)
			}
			out = append(out, strings.SplitN(m.Text, " ", 3)[0])
		}
		return strings.Join(out, ",")
	}
	check := func(what, want string) {
		t.Helper()
		if got := seen(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	add(session.Created{})
	add(session.UserSaid{Text: "one"})
	point := add(session.ModelAnswered{Text: "answer1"})
	add(session.UserSaid{Text: "two"})
	add(session.ModelAnswered{Text: "answer2"})
	add(session.Restored{Action: session.RestorePoint, Point: point, Files: true})
	check("files alone", "one,answer1,two,answer2,[From")
	add(session.Restored{Action: session.RestorePoint, Point: point, Files: true, Conversation: true})
	check("with the conversation", "one,answer1,[From")
	add(session.UserSaid{Text: "three"})
	check("and then", "one,answer1,[From,three")
	add(session.Restored{Action: session.RestoreUndo, Point: point, Conversation: true})
	check("undone", "one,answer1,two,answer2,[From")
	add(session.Restored{Action: session.RestoreRedo, Point: point, Conversation: true})
	check("redone", "one,answer1,[From")
	add(session.UserSaid{Text: "four"})
	check("at last", "one,answer1,[From,four")
}
