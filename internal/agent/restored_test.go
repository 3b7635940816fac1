package agent

import (
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// A restored conversation ends at its point for the model, until that is undone.
func TestRestoredConversation(t *testing.T) {
	t.Parallel()
	tr, log := newTranscript("c1"), memlog.New()
	number := int64(0)
	add := func(p session.Payload) int64 {
		t.Helper()
		number++
		row := session.Row{ID: "c1", Owner: "ada", Last: number}
		if err := log.Append(t.Context(), session.Batch{ID: "c1", After: number - 1, Events: []session.Event{{Number: number, Payload: p}}, Row: row}); err != nil {
			t.Fatal(err)
		}
		if err := tr.advance(t.Context(), log, session.State{ID: "c1", Last: number}); err != nil {
			t.Fatal(err)
		}
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

	// What was summarised after a point is there again as it was.
	point = add(session.ModelAnswered{Text: "answer4"})
	add(session.UserSaid{Text: "five"})
	add(session.Condensed{From: 3, To: number, Summary: "of-five"})
	check("condensed", "one,[From")
	add(session.Restored{Action: session.RestorePoint, Point: point, Conversation: true})
	check("before the summary", "one,answer1,[From,four,answer4,[From")
	add(session.Restored{Action: session.RestoreUndo, Point: point, Conversation: true})
	check("the summary again", "one,[From")

	// A call whose result is not seen has one all the same, a withdrawn message stays withdrawn.
	add(session.UserSaid{Text: "six"})
	gone := add(session.UserSaid{Text: "gone"})
	point = add(session.ModelAnswered{ToolCalls: []session.ToolCall{{ID: "a", Name: "say"}}})
	add(session.Withdrawn{Messages: []int64{gone}})
	add(session.ToolReturned{ID: "a", Name: "say", Output: "said"})
	add(session.Restored{Action: session.RestorePoint, Point: point, Conversation: true})
	check("within a step", "one,[From,six,,This,[From")
}
