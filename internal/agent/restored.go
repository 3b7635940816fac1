package agent

import (
	"context"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// reread reads what the model sees after a restore, as if there were no other events: summaries too have nothing of what was undone.
func (t *transcript) reread(ctx context.Context, log session.Log) error {
	fresh := newTranscript(t.id)
	fresh.path, fresh.upTo, fresh.folder = t.path, t.upTo, t.folder
	for e, err := range t.path.Read(ctx, log, t.id, t.upTo) {
		if err != nil {
			return err
		}
		fresh.add(e)
	}
	*t = *fresh
	return nil
}

// restored tells the model that files changed, or that the history is an earlier one.
func (t *transcript) restored(number int64, p session.Restored) {
	t.repeats = loopDetector{}
	const text = "The user restored the files of the workspace, or this conversation, to an earlier point. Read files again before you change them."
	if p.Conversation {
		t.close(number) // the point may lie between a call and its result
	}
	if p.Files || p.Conversation && p.Action != session.RestoreUndo {
		t.tell(entry{Message: llm.Message{Role: llm.User, Text: "[From the system that runs you, not from the user] " + text, Aside: true}, number: number, context: true})
	}
}

// rewrite puts other messages in the place of all.
func (t *transcript) rewrite(messages []entry) {
	t.messages, t.shown, t.size, t.counted, t.since, t.pictured = nil, nil, 0, 0, 0, min(t.pictured, len(messages))
	t.written = &llm.Written{}
	for _, m := range messages {
		t.push(m)
	}
}
