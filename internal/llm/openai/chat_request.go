package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"deckhand/internal/llm"
)

// body is a request as chat completions want it.
func (m *chat) body(req llm.Request) [][]byte {
	b := llm.NewBody(&req, fromChat+"/"+m.name)
	b.Raw("{")
	b.Field("model", m.name)
	b.Raw(`,"stream":true,"stream_options":{"include_usage":true}`)
	b.FieldIf("reasoning_effort", m.opts.Effort)
	if len(req.Stop) > 0 {
		b.Raw(`,"stop":[`)
		for _, s := range req.Stop {
			b.Item("")
			b.Quote(s)
		}
		b.Raw("]")
	}
	switch {
	case req.MaxOutput <= 0:
	case m.opts.Compatible:
		b.Number("max_tokens", req.MaxOutput)
	default:
		b.Number("max_completion_tokens", req.MaxOutput)
	}
	if m.own {
		b.FieldIf("prompt_cache_key", req.Conversation)
	}
	b.Tools(func() {
		b.Raw(`,"tools":[`)
		for _, t := range req.Tools {
			b.Item(`{"type":"function","function":{`)
			b.Field("name", t.Name)
			b.FieldIf("description", t.Description)
			b.Value("parameters", schemas.Sent(t.Schema))
			b.Raw("}}")
		}
		b.Raw("]")
	})
	b.Raw(`,"messages":[`)
	first := b.Messages()
	if first == 0 && req.System != "" {
		b.Item(`{"role":"system"`)
		b.Field("content", req.System)
		b.Raw("}")
	}
	m.messages(b, req.Messages, first)
	b.Raw("]}")
	return b.Parts()
}

// messages writes the messages from the first one on.
func (m *chat) messages(b *llm.Body, messages []llm.Message, first int) {
	// results counts the results since the last message. A tool message has no place for their
	// images, and no other message may come between two results.
	results, images := 0, false
	for i, msg := range messages[first:] {
		i += first
		if msg.Role == llm.ToolResult {
			b.Item(`{"role":"tool"`)
			b.Field("tool_call_id", msg.Call)
			b.Field("content", msg.Text)
			b.Raw("}")
			results++
			if images = images || len(msg.Images) > 0; !images {
				b.Keep(i + 1)
			}
			continue
		}
		shown(b, messages[i-results:i])
		results, images = 0, false
		switch {
		case msg.Role == llm.Assistant && (msg.Text != "" || len(msg.Calls) > 0):
			m.assistant(b, msg)
		case msg.Role == llm.User && len(msg.Images) > 0:
			b.Item(`{"role":"user","content":[`)
			if msg.Text != "" {
				textPart(b, msg.Text)
			}
			imageParts(b, msg.Images)
			b.Raw("]}")
		case msg.Role == llm.User && msg.Text != "":
			b.Item(`{"role":"user"`)
			b.Field("content", msg.Text)
			b.Raw("}")
		}
		b.Keep(i + 1)
	}
	shown(b, messages[len(messages)-results:])
}

// shown writes the images of results, as if a person showed them.
func shown(b *llm.Body, results []llm.Message) {
	if !slices.ContainsFunc(results, func(r llm.Message) bool { return len(r.Images) > 0 }) {
		return
	}
	b.Item(`{"role":"user","content":[`)
	for _, r := range results {
		if len(r.Images) > 0 {
			textPart(b, "Images from the result of "+r.Name+" (call "+r.Call+"):")
			imageParts(b, r.Images)
		}
	}
	b.Raw("]}")
}

func textPart(b *llm.Body, text string) {
	b.Item(`{"type":"text"`)
	b.Field("text", text)
	b.Raw("}")
}

func imageParts(b *llm.Body, urls []string) {
	for _, u := range urls {
		b.Item(`{"type":"image_url","image_url":{`)
		b.Field("url", u)
		b.Raw("}}")
	}
}

// assistant writes what the model said before, with what its server wants to
// see again.
func (m *chat) assistant(b *llm.Body, msg llm.Message) {
	kept := m.kept(msg.Raw)
	b.Item(`{"role":"assistant"`)
	b.FieldIf("content", msg.Text)
	if len(msg.Calls) > 0 {
		b.Raw(`,"tool_calls":[`)
		for _, c := range msg.Calls {
			b.Item(`{"type":"function"`)
			b.Field("id", c.ID)
			b.Raw(`,"function":{`)
			b.Field("name", c.Name)
			b.Quoted("arguments", sent(c.Args))
			b.Raw("}")
			if extra, ok := kept.Calls[c.ID]; ok {
				b.Value("extra_content", extra)
			}
			b.Raw("}")
		}
		b.Raw("]")
	}
	if len(kept.Fields) > 0 {
		for _, name := range slices.Sorted(maps.Keys(kept.Fields)) {
			b.Value(name, kept.Fields[name])
		}
	}
	b.Raw("}")
}

// kept reads a Raw; what is not of this model is empty. Those of others are not
// even read.
func (m *chat) kept(raw json.RawMessage) chatKept {
	if !bytes.Contains(raw, []byte(fromChat)) {
		return chatKept{}
	}
	var k chatKept
	if jsonv2.Unmarshal(raw, &k, lax) != nil || k.From != fromChat || k.Model != m.name {
		return chatKept{}
	}
	return k
}
