package openai

import (
	"bytes"
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"

	"deckhand/internal/llm"
)

// body is a request as responses want it.
func (m *response) body(req llm.Request) []byte {
	wire := fromResponses + "/" + m.name
	if m.opts.Thinks {
		wire += "/thinks"
	}
	tools, before, count := req.Recall(wire)
	b := newBody(req, tools, before, count)
	b.raw("{")
	b.field("model", m.name)
	b.raw(`,"stream":true,"store":false`)
	b.fieldIf("instructions", req.System)
	if req.MaxOutput > 0 {
		b.number("max_output_tokens", req.MaxOutput)
	}
	if m.own {
		b.fieldIf("prompt_cache_key", req.Conversation)
	}
	if m.opts.Thinks { // models that do not think refuse these
		b.raw(`,"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"`)
		b.fieldIf("effort", m.opts.Effort)
		b.raw("}")
	}
	if start := len(b); tools != nil {
		b.raw(string(tools))
	} else if len(req.Tools) > 0 {
		b.raw(`,"tools":[`)
		for _, t := range req.Tools {
			b.item(`{"type":"function","strict":false`)
			b.field("name", t.Name)
			b.fieldIf("description", t.Description)
			b.value("parameters", written.parameters(t.Schema))
			b.raw("}")
		}
		b.raw("]")
		tools = b[start:]
	}
	b.raw(`,"input":[`)
	start := len(b)
	b.raw(string(before))
	for _, msg := range req.Messages[count:] {
		switch {
		case msg.Role == llm.User && (msg.Text != "" || len(msg.Images) > 0):
			b.item(`{"role":"user","content":[`)
			parts(&b, msg, `{"type":"input_image","detail":"auto"`)
			b.raw("]}")
		case msg.Role == llm.Assistant:
			m.assistant(&b, msg)
		case msg.Role == llm.ToolResult:
			result(&b, msg)
		}
	}
	req.Keep(wire, tools, b[start:], len(req.Messages))
	b.raw("]}")
	return b
}

// parts writes what a message says and shows. Each image begins with this JSON.
func parts(b *body, msg llm.Message, image string) {
	if msg.Text != "" {
		b.item(`{"type":"input_text"`)
		b.field("text", msg.Text)
		b.raw("}")
	}
	for _, u := range msg.Images {
		b.item(image)
		b.field("image_url", u)
		b.raw("}")
	}
}

// assistant writes what the model said before: its text and its calls, each
// after the thoughts that led to it.
func (m *response) assistant(b *body, msg llm.Message) {
	thoughts := m.kept(msg.Raw)
	think := func(call string) {
		for _, t := range thoughts {
			if t.Call == call && len(t.Item) > 0 {
				b.item(string(t.Item))
			}
		}
	}
	if msg.Text != "" {
		think("")
		b.item(`{"role":"assistant"`)
		b.field("content", msg.Text)
		b.raw("}")
	}
	for _, c := range msg.Calls {
		think(c.ID)
		b.item(`{"type":"function_call"`)
		b.field("call_id", c.ID)
		b.field("name", c.Name)
		b.arguments(c.Args)
		b.raw("}")
	}
}

// kept reads the thoughts in a Raw. Those of other models are not even read.
func (m *response) kept(raw json.RawMessage) []thought {
	if !m.opts.Thinks || !bytes.Contains(raw, []byte(fromResponses)) {
		return nil
	}
	var k responseKept
	if jsonv2.Unmarshal(raw, &k, lax) != nil || k.From != fromResponses || k.Model != m.name {
		return nil
	}
	return k.Thoughts
}

// result writes what a call gave.
func result(b *body, msg llm.Message) {
	b.item(`{"type":"function_call_output"`)
	b.field("call_id", msg.Call)
	if len(msg.Images) == 0 {
		b.field("output", msg.Text)
	} else {
		b.raw(`,"output":[`)
		parts(b, msg, `{"type":"input_image"`)
		b.raw("]")
	}
	b.raw("}")
}
