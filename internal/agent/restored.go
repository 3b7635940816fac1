package agent

import (
	"slices"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// restored tells the model that files are not what it made of them. With the conversation, it does not see what came
// after the point, until that is undone.
func (t *transcript) restored(number int64, p session.Restored) {
	t.repeats = loopDetector{}
	text := "The user restored the files of the workspace to an earlier state. Read files again before you change them."
	switch {
	case p.Conversation && p.Action == session.RestoreUndo:
		if n := len(t.hidden); n > 0 {
			t.rewrite(append(t.before(p.Point), t.hidden[n-1]...))
			t.hidden = t.hidden[:n-1]
		}
	case p.Conversation:
		whole := t.messages
		kept := t.before(p.Point)
		t.hidden = append(t.hidden, slices.Clone(whole[len(kept):]))
		t.rewrite(kept)
		if !p.Files {
			text = "The user took back what was said since this point. The files of the workspace are as they were left."
		}
	}
	if p.Files || p.Conversation && p.Action != session.RestoreUndo {
		t.tell(entry{Message: llm.Message{Role: llm.User, Text: "[From the system that runs you, not from the user] " + text, Aside: true}, number: number, context: true})
	}
}

// before are the messages up to an event.
func (t *transcript) before(point int64) []entry {
	i := slices.IndexFunc(t.messages, func(m entry) bool { return m.number > point })
	if i < 0 {
		i = len(t.messages)
	}
	return slices.Clone(t.messages[:i])
}

// rewrite puts other messages in the place of all.
func (t *transcript) rewrite(messages []entry) {
	pictured := min(t.pictured, len(messages))
	t.messages, t.shown, t.size, t.counted, t.since, t.pictured = nil, nil, 0, 0, 0, pictured
	t.written = &llm.Written{}
	for _, m := range messages {
		t.push(m)
	}
}
