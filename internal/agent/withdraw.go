package agent

import (
	"slices"

	"deckhand/internal/llm"
)

// withdraw removes messages that the model was not shown, with what was recalled for them.
func (t *transcript) withdraw(messages []int64) {
	gone := func(m entry) bool { return slices.Contains(messages, m.number) }
	t.held = slices.DeleteFunc(t.held, gone)
	if from := slices.IndexFunc(t.messages, gone); from >= 0 {
		rest := t.messages[from:]
		t.messages, t.shown = slices.Clone(t.messages[:from]), slices.Clone(t.shown[:from])
		t.pictured, t.written = min(t.pictured, from), &llm.Written{}
		for _, m := range rest {
			if t.grow(-weight(m)); !gone(m) {
				t.push(m)
			}
		}
	}
	if !slices.Contains(messages, t.first) {
		return
	}
	t.first, t.firstText = 0, ""
	for _, m := range slices.Concat(t.messages, t.held) {
		if m.Role == llm.User && !m.summary && !m.context {
			t.first, t.firstText = m.number, m.Text
			return
		}
	}
}
