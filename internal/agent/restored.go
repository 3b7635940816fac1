package agent

import (
	"slices"
	"sort"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// restored tells the model that files changed. With the conversation, it does not see what came after the point until an undo.
func (t *transcript) restored(number int64, p session.Restored) {
	t.repeats = loopDetector{}
	const text = "The user restored the files of the workspace, or this conversation, to an earlier point. Read files again before you change them."
	switch {
	case p.Conversation && p.Action == session.RestoreUndo && len(t.hidden) > 0:
		t.rewrite(append(t.before(p.Point), t.hidden[len(t.hidden)-1]...))
		t.hidden = t.hidden[:len(t.hidden)-1]
	case p.Conversation && p.Action != session.RestoreUndo:
		kept := t.before(p.Point)
		t.hidden = append(t.hidden, slices.Clone(t.messages[len(kept):]))
		t.rewrite(kept)
	}
	if p.Files || p.Conversation && p.Action != session.RestoreUndo {
		t.tell(entry{Message: llm.Message{Role: llm.User, Text: "[From the system that runs you, not from the user] " + text, Aside: true}, number: number, context: true})
	}
}

// before are the messages up to an event.
func (t *transcript) before(point int64) []entry {
	n := sort.Search(len(t.messages), func(i int) bool { return t.messages[i].number > point })
	return slices.Clone(t.messages[:n])
}

// rewrite puts other messages in the place of all.
func (t *transcript) rewrite(messages []entry) {
	t.messages, t.shown, t.size, t.counted, t.since, t.pictured = nil, nil, 0, 0, 0, min(t.pictured, len(messages))
	t.written = &llm.Written{}
	for _, m := range messages {
		t.push(m)
	}
}
