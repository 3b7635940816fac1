package anthropic

import (
	"encoding/json"
	"strings"

	"deckhand/internal/llm"
)

// answer is the response so far.
type answer struct {
	model  string
	window int64
	began  bool
	// calling is the request's.
	calling func(tool string)
	ended   bool
	stop    string
	// refusal is why the model refuses to respond, if it says so.
	refusal                              string
	input, output, cacheRead, cacheWrite int64
	open                                 map[int64]*piece
	order                                []*piece
}

// piece is an incomplete content block.
type piece struct {
	kind      string
	text      strings.Builder // or thinking, or the arguments of a call
	signature string
	data      string
	id, name  string
	closed    bool
}

// add adds an event and returns the new parts.
func (a *answer) add(e event) []llm.Part {
	a.began = true
	switch e.Type {
	case "message_start":
		a.count(e.Message.Usage)
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

// start starts a block. Some servers send its first text here.
func (a *answer) start(e event) []llm.Part {
	b := e.Block
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
		if a.calling != nil {
			a.calling(b.Name)
		}
		if input := string(b.Input); input != "{}" && input != "null" {
			p.text.WriteString(input)
		}
	}
	return nil
}

func (p *piece) grow(d delta) []llm.Part {
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

// close ends a block, which completes a call.
func (p *piece) close() []llm.Part {
	if p.closed || p.kind != "tool_use" {
		return nil
	}
	p.closed = true
	return []llm.Part{{Call: &llm.Call{ID: p.id, Name: p.name, Args: arguments(p.text.String())}}}
}

// arguments returns the JSON object that the model wrote, or a string if it is not an
// object.
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

// settle handles the end of the response. Counts are totals; missing ones keep the values
// of the start.
func (a *answer) settle(e event) {
	if e.Delta.StopReason != "" {
		a.stop = e.Delta.StopReason
	}
	a.refusal = e.Delta.StopDetails.Explanation
	a.output = 0 // what the start said was before the answer
	a.count(e.Usage)
}

// count takes in the counts that are there.
func (a *answer) count(u usage) {
	set(&a.input, u.Input)
	set(&a.output, u.Output)
	set(&a.cacheRead, u.CacheRead)
	set(&a.cacheWrite, u.CacheWrite)
}

func set(total *int64, said *count) {
	if said != nil {
		*total = int64(*said)
	}
}

// rest returns the calls whose end the server did not mark.
func (a *answer) rest() []llm.Part {
	var parts []llm.Part
	for _, p := range a.order {
		parts = append(parts, p.close()...)
	}
	return parts
}

func (a *answer) done() *llm.Done {
	return &llm.Done{
		Usage: llm.Usage{
			Input:  a.input + a.cacheRead + a.cacheWrite,
			Output: a.output, CacheRead: a.cacheRead, CacheWrite: a.cacheWrite,
			Window: a.window,
		},
		Cut: a.stop == "max_tokens" || a.stop == "model_context_window_exceeded",
		Raw: a.raw(),
	}
}

// raw returns what the API needs to see again; nothing unless the model was thinking.
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
