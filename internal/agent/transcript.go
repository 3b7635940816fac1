package agent

import (
	"context"
	"strings"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// transcript is the history as the model sees it. It is read once when a
// worker begins and then advanced: a step costs what is new, not what is old.
type transcript struct {
	id       session.ID
	upTo     int64
	messages []llm.Message
	size     int // bytes of text in messages
	extra    string
	// asking is true between a call and its answer. What is said meanwhile is
	// held back and shown behind the answer, which was given without knowing it.
	asking bool
	held   []llm.Message
}

func readTranscript(ctx context.Context, log session.Log, id session.ID) (*transcript, error) {
	t := &transcript{id: id}
	return t, t.advance(ctx, log)
}

// advance reads what was appended.
func (t *transcript) advance(ctx context.Context, log session.Log) error {
	for e, err := range log.Read(ctx, t.id, t.upTo) {
		if err != nil {
			return err
		}
		t.add(e)
		t.upTo = e.Number
	}
	return nil
}

func (t *transcript) add(e session.Event) {
	switch p := e.Payload.(type) {
	case session.Created:
		t.extra = p.Instructions
	case session.UserSaid:
		m := llm.Message{Role: llm.User, Text: p.Text, Images: p.Images}
		if t.asking {
			t.held = append(t.held, m)
			return
		}
		t.push(m)
	case session.ModelAsked:
		t.asking = true
	case session.ModelAnswered:
		t.push(llm.Message{Role: llm.Assistant, Text: p.Text})
		t.settle()
	case session.ModelFailed:
		t.settle()
	}
}

// settle shows what was held back during a call.
func (t *transcript) settle() {
	t.asking = false
	for _, m := range t.held {
		t.push(m)
	}
	t.held = nil
}

func (t *transcript) push(m llm.Message) {
	t.messages = append(t.messages, m)
	t.size += len(m.Text)
}

func (t *transcript) request(p Profile) llm.Request {
	return llm.Request{Model: p.ModelName, System: system(p, t.extra), Messages: t.messages, MaxOutput: maxAnswer}
}

// system is all that the model is told before the conversation.
func system(p Profile, instructions string) string {
	if instructions == "" {
		return p.System
	}
	return strings.TrimSpace(p.System) + "\n\nInstructions for this conversation:\n" + instructions
}

// firstSaid is the person's first message.
func (t *transcript) firstSaid() string {
	for _, m := range t.messages {
		if m.Role == llm.User {
			return m.Text
		}
	}
	return ""
}
