package openai

import (
	"bytes"
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"

	"deckhand/internal/llm"
)

// body is a request as responses want it.
func (m *response) body(req llm.Request) [][]byte {
	wire := fromResponses + "/" + m.name
	if m.opts.Thinks {
		wire += "/thinks"
	}
	b := llm.NewBody(&req, wire)
	b.Raw("{")
	b.Field("model", m.name)
	b.Raw(`,"stream":true,"store":false`)
	b.FieldIf("instructions", req.System)
	if req.MaxOutput > 0 {
		b.Number("max_output_tokens", req.MaxOutput)
	}
	if m.own {
		b.FieldIf("prompt_cache_key", req.Conversation)
	}
	if m.opts.Thinks { // models that do not think refuse these
		b.Raw(`,"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"`)
		b.FieldIf("effort", m.opts.Effort)
		b.Raw("}")
	}
	b.Tools(func() {
		b.Raw(`,"tools":[`)
		for _, t := range req.Tools {
			b.Item(`{"type":"function","strict":false`)
			b.Field("name", t.Name)
			b.FieldIf("description", t.Description)
			b.Value("parameters", schemas.Sent(t.Schema))
			b.Raw("}")
		}
		b.Raw("]")
	})
	b.Raw(`,"input":[`)
	for _, msg := range req.Messages[b.Messages():] {
		switch {
		case msg.Role == llm.User && (msg.Text != "" || len(msg.Images) > 0):
			b.Item(`{"role":"user","content":[`)
			parts(b, msg, `{"type":"input_image","detail":"auto"`)
			b.Raw("]}")
		case msg.Role == llm.Assistant:
			m.assistant(b, msg)
		case msg.Role == llm.ToolResult:
			result(b, msg)
		}
	}
	b.Keep(len(req.Messages))
	b.Raw("]}")
	return b.Parts()
}

// parts writes what a message says and shows. Each image begins with this JSON.
func parts(b *llm.Body, msg llm.Message, image string) {
	if msg.Text != "" {
		b.Item(`{"type":"input_text"`)
		b.Field("text", msg.Text)
		b.Raw("}")
	}
	for _, u := range msg.Images {
		b.Item(image)
		b.Field("image_url", u)
		b.Raw("}")
	}
}

// assistant writes what the model said before: its text and its calls, each
// after the thoughts that led to it.
func (m *response) assistant(b *llm.Body, msg llm.Message) {
	thoughts := m.kept(msg.Raw)
	think := func(call string) {
		for _, t := range thoughts {
			if t.Call == call && len(t.Item) > 0 {
				b.Item(string(t.Item))
			}
		}
	}
	if msg.Text != "" {
		think("")
		b.Item(`{"role":"assistant"`)
		b.Field("content", msg.Text)
		b.Raw("}")
	}
	for _, c := range msg.Calls {
		think(c.ID)
		b.Item(`{"type":"function_call"`)
		b.Field("call_id", c.ID)
		b.Field("name", c.Name)
		b.Quoted("arguments", sent(c.Args))
		b.Raw("}")
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
func result(b *llm.Body, msg llm.Message) {
	b.Item(`{"type":"function_call_output"`)
	b.Field("call_id", msg.Call)
	if len(msg.Images) == 0 {
		b.Field("output", msg.Text)
	} else {
		b.Raw(`,"output":[`)
		parts(b, msg, `{"type":"input_image"`)
		b.Raw("]")
	}
	b.Raw("}")
}
