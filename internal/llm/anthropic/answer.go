package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"deckhand/internal/llm"
)

// answer is what came so far.
type answer struct {
	model  string
	window int64
	began  bool
	ended  bool
	stop   sdk.StopReason
	// refusal is why the model does not answer, if it says so.
	refusal string
	usage   sdk.Usage
	open    map[int64]*piece
	order   []*piece
}

// piece is a block of content that is being written.
type piece struct {
	kind      string
	text      strings.Builder // or thinking, or the arguments of a call
	signature string
	data      string
	id, name  string
	closed    bool
}

// add takes in an event and returns what is new in it.
func (a *answer) add(e sdk.MessageStreamEventUnion) []llm.Part {
	a.began = true
	switch e.Type {
	case "message_start":
		a.usage = e.Message.Usage
	case "content_block_start":
		return a.start(e)
	case "content_block_delta":
		if p := a.open[e.Index]; p != nil {
			return p.grow(e.Delta)
		}
	case "content_block_stop":
		if p := a.open[e.Index]; p != nil {
			delete(a.open, e.Index)
			return p.close()
		}
	case "message_delta":
		a.settle(e)
	case "message_stop":
		a.ended = true
	}
	return nil
}

// start begins a block. Some servers put its first words here already.
func (a *answer) start(e sdk.MessageStreamEventUnion) []llm.Part {
	b := e.ContentBlock
	p := &piece{kind: b.Type, signature: b.Signature, data: b.Data, id: b.ID, name: b.Name}
	if a.open == nil {
		a.open = map[int64]*piece{}
	}
	a.open[e.Index] = p
	a.order = append(a.order, p)
	switch b.Type {
	case "text":
		return p.say(b.Text)
	case "thinking":
		return p.think(b.Thinking)
	case "tool_use":
		if input := b.JSON.Input.Raw(); input != "{}" && input != "null" {
			p.text.WriteString(input)
		}
	}
	return nil
}

func (p *piece) grow(d sdk.MessageStreamEventUnionDelta) []llm.Part {
	switch d.Type {
	case "text_delta":
		return p.say(d.Text)
	case "thinking_delta":
		return p.think(d.Thinking)
	case "signature_delta":
		p.signature += d.Signature
	case "input_json_delta":
		p.text.WriteString(d.PartialJSON)
	}
	return nil
}

func (p *piece) say(text string) []llm.Part {
	if text == "" {
		return nil
	}
	p.text.WriteString(text)
	return []llm.Part{{Text: text}}
}

func (p *piece) think(text string) []llm.Part {
	if text == "" {
		return nil
	}
	p.text.WriteString(text)
	return []llm.Part{{Reasoning: text}}
}

// close ends a block; a call is whole now.
func (p *piece) close() []llm.Part {
	if p.closed || p.kind != "tool_use" {
		return nil
	}
	p.closed = true
	return []llm.Part{{Call: &llm.Call{ID: p.id, Name: p.name, Args: arguments(p.text.String())}}}
}

// arguments are what the model wrote, as a JSON object, or as a string if it is none.
func arguments(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if text == "" {
		return json.RawMessage(`{}`)
	}
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil { // cannot be: a text is always JSON
		return json.RawMessage(`{}`)
	}
	return quoted
}

// settle takes in how the answer ended. Counts are totals; those that are not
// there keep what the start said.
func (a *answer) settle(e sdk.MessageStreamEventUnion) {
	if e.Delta.StopReason != "" {
		a.stop = e.Delta.StopReason
	}
	a.refusal = e.Delta.StopDetails.Explanation
	u := e.Usage
	a.usage.OutputTokens = u.OutputTokens
	if u.JSON.InputTokens.Valid() {
		a.usage.InputTokens = u.InputTokens
	}
	if u.JSON.CacheReadInputTokens.Valid() {
		a.usage.CacheReadInputTokens = u.CacheReadInputTokens
	}
	if u.JSON.CacheCreationInputTokens.Valid() {
		a.usage.CacheCreationInputTokens = u.CacheCreationInputTokens
	}
}

// rest are the calls whose end the server did not mark.
func (a *answer) rest() []llm.Part {
	var parts []llm.Part
	for _, p := range a.order {
		parts = append(parts, p.close()...)
	}
	return parts
}

func (a *answer) done() *llm.Done {
	u := a.usage
	return &llm.Done{
		Usage: llm.Usage{
			Input:  u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
			Output: u.OutputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens,
			Window: a.window,
		},
		Cut: a.stop == sdk.StopReasonMaxTokens || a.stop == sdk.StopReasonModelContextWindowExceeded,
		Raw: a.raw(),
	}
}

// raw is what the API wants to see again. There is something only if the model thought.
func (a *answer) raw() json.RawMessage {
	r := raw{From: from, Model: a.model}
	thought := false
	for _, p := range a.order {
		switch {
		case p.kind == "redacted_thinking" && p.data != "":
			r.Blocks = append(r.Blocks, block{Redacted: p.data})
			thought = true
		case p.kind == "thinking" && p.signature != "":
			r.Blocks = append(r.Blocks, block{Thinking: p.text.String(), Signature: p.signature})
			thought = true
		case p.kind == "text" && p.text.Len() > 0:
			r.Blocks = append(r.Blocks, block{Text: p.text.Len()})
		case p.kind == "tool_use":
			r.Blocks = append(r.Blocks, block{Call: true})
		}
	}
	if !thought {
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil { // cannot be: it is made of texts and numbers
		return nil
	}
	return b
}
