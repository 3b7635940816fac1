package agent

import (
	"context"
	"encoding/json"
	"slices"
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
	// open are the calls of the last answer that have no result yet.
	open []string
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
		if t.asking || len(t.open) > 0 {
			t.held = append(t.held, m)
			return
		}
		t.push(m)
	case session.ModelAsked:
		t.close()
		t.asking = true
	case session.ModelAnswered:
		t.answered(p)
	case session.ToolReturned:
		t.returned(p)
	case session.ModelFailed:
		t.settle()
	}
}

func (t *transcript) answered(p session.ModelAnswered) {
	m := llm.Message{Role: llm.Assistant, Text: p.Text}
	for _, c := range p.ToolCalls {
		m.Calls = append(m.Calls, llm.Call{ID: c.ID, Name: c.Name, Args: c.Args})
		t.open = append(t.open, c.ID)
		t.size += len(c.Name) + len(c.Args)
	}
	t.push(m)
	t.settle()
}

func (t *transcript) returned(p session.ToolReturned) {
	t.open = slices.DeleteFunc(t.open, func(id string) bool { return id == p.ID })
	t.push(llm.Message{Role: llm.ToolResult, Call: p.ID, Text: resultText(p), Failed: p.Outcome != session.Succeeded})
	if len(t.open) == 0 {
		t.settle()
	}
}

// close gives a result to calls that were never made, because the person
// stopped or paused before their turn came: models insist on one for each.
func (t *transcript) close() {
	for _, id := range t.open {
		t.push(llm.Message{Role: llm.ToolResult, Call: id, Text: "This call was not made: the user interrupted the work before it.", Failed: true})
	}
	t.open = nil
	t.settle()
}

// resultText is a result as the model sees it: the tool's words around the
// output, and where the shell stands.
func resultText(p session.ToolReturned) string {
	var d struct {
		Prefix     string `json:"prefix"`
		Suffix     string `json:"suffix"`
		WorkingDir string `json:"working_dir"`
	}
	_ = json.Unmarshal(p.Details, &d)
	text := d.Prefix + p.Output + d.Suffix
	if d.WorkingDir != "" {
		text += "\n[Current working directory: " + d.WorkingDir + "]"
	}
	return text
}

// settle shows what was held back during a call.
func (t *transcript) settle() {
	t.asking = false
	if len(t.open) > 0 {
		return
	}
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
	return llm.Request{Model: p.ModelName, System: system(p, t.extra), Messages: t.messages, Tools: tools(p), MaxOutput: maxAnswer}
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
