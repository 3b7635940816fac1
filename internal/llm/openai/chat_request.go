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
func (m *chat) body(req llm.Request) []byte {
	wire := fromChat + "/" + m.name
	tools, before, count := req.Recall(wire)
	b := newBody(req, tools, before, count)
	b.raw("{")
	b.field("model", m.name)
	b.raw(`,"stream":true,"stream_options":{"include_usage":true}`)
	b.fieldIf("reasoning_effort", m.opts.Effort)
	if len(req.Stop) > 0 {
		b.raw(`,"stop":[`)
		for _, s := range req.Stop {
			b.item("")
			b.quote(s)
		}
		b.raw("]")
	}
	switch {
	case req.MaxOutput <= 0:
	case m.opts.Compatible:
		b.number("max_tokens", req.MaxOutput)
	default:
		b.number("max_completion_tokens", req.MaxOutput)
	}
	if m.own {
		b.fieldIf("prompt_cache_key", req.Conversation)
	}
	if start := len(b); tools != nil {
		b.raw(string(tools))
	} else if len(req.Tools) > 0 {
		b.raw(`,"tools":[`)
		for _, t := range req.Tools {
			b.item(`{"type":"function","function":{`)
			b.field("name", t.Name)
			b.fieldIf("description", t.Description)
			b.value("parameters", written.parameters(t.Schema))
			b.raw("}}")
		}
		b.raw("]")
		tools = b[start:]
	}
	b.raw(`,"messages":[`)
	start := len(b)
	b.raw(string(before))
	if count == 0 && req.System != "" {
		b.item(`{"role":"system"`)
		b.field("content", req.System)
		b.raw("}")
	}
	count, end := m.messages(&b, req.Messages, count)
	req.Keep(wire, tools, b[start:end], count)
	b.raw("]}")
	return b
}

// messages writes the messages from the first one on. What it has written up to end are the first
// count messages, whatever comes after them.
func (m *chat) messages(b *body, messages []llm.Message, first int) (count, end int) {
	count, end = first, len(*b)
	// results counts the results since the last message. A tool message has no place for their
	// images, and no other message may come between two results.
	results, images := 0, false
	for i, msg := range messages[first:] {
		i += first
		if msg.Role == llm.ToolResult {
			b.item(`{"role":"tool"`)
			b.field("tool_call_id", msg.Call)
			b.field("content", msg.Text)
			b.raw("}")
			results++
			if images = images || len(msg.Images) > 0; !images {
				count, end = i+1, len(*b)
			}
			continue
		}
		shown(b, messages[i-results:i])
		results, images = 0, false
		switch {
		case msg.Role == llm.Assistant && (msg.Text != "" || len(msg.Calls) > 0):
			m.assistant(b, msg)
		case msg.Role == llm.User && len(msg.Images) > 0:
			b.item(`{"role":"user","content":[`)
			if msg.Text != "" {
				textPart(b, msg.Text)
			}
			imageParts(b, msg.Images)
			b.raw("]}")
		case msg.Role == llm.User && msg.Text != "":
			b.item(`{"role":"user"`)
			b.field("content", msg.Text)
			b.raw("}")
		}
		count, end = i+1, len(*b)
	}
	shown(b, messages[len(messages)-results:])
	return count, end
}

// shown writes the images of results, as if a person showed them.
func shown(b *body, results []llm.Message) {
	if !slices.ContainsFunc(results, func(r llm.Message) bool { return len(r.Images) > 0 }) {
		return
	}
	b.item(`{"role":"user","content":[`)
	for _, r := range results {
		if len(r.Images) > 0 {
			textPart(b, "Images from the result of "+r.Name+" (call "+r.Call+"):")
			imageParts(b, r.Images)
		}
	}
	b.raw("]}")
}

func textPart(b *body, text string) {
	b.item(`{"type":"text"`)
	b.field("text", text)
	b.raw("}")
}

func imageParts(b *body, urls []string) {
	for _, u := range urls {
		b.item(`{"type":"image_url","image_url":{`)
		b.field("url", u)
		b.raw("}}")
	}
}

// assistant writes what the model said before, with what its server wants to
// see again.
func (m *chat) assistant(b *body, msg llm.Message) {
	kept := m.kept(msg.Raw)
	b.item(`{"role":"assistant"`)
	b.fieldIf("content", msg.Text)
	if len(msg.Calls) > 0 {
		b.raw(`,"tool_calls":[`)
		for _, c := range msg.Calls {
			b.item(`{"type":"function"`)
			b.field("id", c.ID)
			b.raw(`,"function":{`)
			b.field("name", c.Name)
			b.arguments(c.Args)
			b.raw("}")
			if extra, ok := kept.Calls[c.ID]; ok {
				b.value("extra_content", extra)
			}
			b.raw("}")
		}
		b.raw("]")
	}
	if len(kept.Fields) > 0 {
		for _, name := range slices.Sorted(maps.Keys(kept.Fields)) {
			b.value(name, kept.Fields[name])
		}
	}
	b.raw("}")
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
