package track

import (
	"slices"
	"strings"

	"deckhand/internal/session"
)

// TurnKinds are the kinds of events that Turns needs.
const TurnKinds = "user_said,withdrawn,turn_ended,stopped,restored"

// Turns groups user messages by the turn that answers them, without messages that a restore hides from the model.
type Turns struct {
	list   [][]message
	open   bool        // the last turn is in progress, or its messages are queued
	hidden [][]message // per restore, the turns after its point
	counts []int       // how many turns each restore hid
	// restored is the last restore that can be undone, 0 if there is none.
	restored int64
}

type message struct {
	number int64
	text   string
}

// Remember processes the next event.
func (t *Turns) Remember(e session.Event) {
	switch p := e.Payload.(type) {
	case session.UserSaid:
		t.restored = 0
		if !t.open || len(t.list) == 0 {
			t.list = append(t.list, nil)
		}
		last := len(t.list) - 1
		t.list[last], t.open = append(t.list[last], message{e.Number, p.Text}), true
	case session.Withdrawn:
		for i, turn := range t.list {
			t.list[i] = slices.DeleteFunc(turn, func(m message) bool { return slices.Contains(p.Messages, m.number) })
		}
		t.list = slices.DeleteFunc(t.list, func(turn []message) bool { return len(turn) == 0 })
	case session.TurnEnded:
		t.end(p.UpTo)
	case session.Stopped:
		t.open = false
	case session.Restored:
		t.restore(e.Number, p)
	}
}

// end ends the turn. Messages after upTo belong to the next turn.
func (t *Turns) end(upTo int64) {
	t.open = false
	if len(t.list) == 0 {
		return
	}
	last := t.list[len(t.list)-1]
	at := slices.IndexFunc(last, func(m message) bool { return m.number > upTo })
	if at > 0 {
		t.list[len(t.list)-1] = last[:at:at]
		t.list = append(t.list, last[at:])
	}
	t.open = at >= 0
}

func (t *Turns) restore(number int64, p session.Restored) {
	switch {
	case !p.Conversation:
	case p.Action == session.RestoreUndo:
		t.restored = 0
		if n := len(t.counts); n > 0 {
			from := len(t.hidden) - t.counts[n-1]
			t.list = append(t.list, t.hidden[from:]...)
			t.hidden, t.counts = t.hidden[:from:from], t.counts[:n-1]
			if n > 1 {
				t.restored = number
			}
		}
	default:
		at := slices.IndexFunc(t.list, func(turn []message) bool { return turn[0].number > p.Point })
		if at < 0 {
			at = len(t.list)
		}
		t.hidden, t.counts = append(t.hidden, t.list[at:]...), append(t.counts, len(t.list)-at)
		t.list, t.restored = t.list[:at:at], number
	}
	t.open = false
}

// Last returns the number of the first message of the last turn, and the text of its messages; false if there is none.
func (t *Turns) Last() (number int64, text string, ok bool) {
	if len(t.list) == 0 {
		return 0, "", false
	}
	last := t.list[len(t.list)-1]
	texts := make([]string, len(last))
	for i, m := range last {
		texts[i] = m.text
	}
	return last[0].number, strings.Join(texts, "\n\n"), true
}

// Redoes reports whether the last undone turn can be redone: the user has sent no message since.
func (t *Turns) Redoes() bool { return t.restored > 0 }
