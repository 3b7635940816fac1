package llmtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"deckhand/internal/llm"
)

// anthropicWire speaks Anthropic messages.
type anthropicWire struct{}

func (anthropicWire) serves(path string) bool { return strings.HasSuffix(path, "/v1/messages") }

// anthropicSignature is what a thinking block must come back with. It is made
// of the text, so that a changed text is noticed without keeping any.
func anthropicSignature(thinking string) string {
	sum := sha256.Sum256([]byte("signed: " + thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// anthropicUsage splits what was read as the provider does: input_tokens are
// only those that no cache had to do with.
func anthropicUsage(u llm.Usage) map[string]any {
	return map[string]any{
		"input_tokens":                u.Input - u.CacheRead - u.CacheWrite,
		"cache_read_input_tokens":     u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite,
		"output_tokens":               u.Output,
	}
}

// anthropicStop is why an answer ended.
func anthropicStop(r Reply) string {
	switch {
	case r.Code != "":
		return r.Code
	case r.Cut:
		return "max_tokens"
	case len(r.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// anthropicCallID is the id of a call, made up if the script has none.
func anthropicCallID(a Asked, c llm.Call, i int) string {
	if c.ID != "" {
		return c.ID
	}
	return fmt.Sprintf("toolu_%d_%d", len(a.Messages), i)
}

// anthropicMessage is an answer, without what comes with its end.
func anthropicMessage(a Asked, u llm.Usage) map[string]any {
	return map[string]any{
		"id": "msg_test", "type": "message", "role": "assistant", "model": a.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": anthropicUsage(u),
	}
}

func (anthropicWire) stream(a Asked, r Reply) []frame {
	u := r.usage(a)
	begin := u
	begin.Output = 1
	s := anthropicFrames{reply: r, frames: []frame{
		jsonFrame("message_start", map[string]any{"type": "message_start", "message": anthropicMessage(a, begin)}),
		jsonFrame("ping", map[string]any{"type": "ping"}),
	}}
	if r.Reasoning != "" {
		s.block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", r.Reasoning,
			map[string]any{"type": "signature_delta", "signature": anthropicSignature(r.Reasoning)})
	}
	if r.Text != "" {
		s.block(map[string]any{"type": "text", "text": ""}, "text_delta", "text", r.Text)
	}
	for i, c := range r.Calls {
		s.block(map[string]any{"type": "tool_use", "id": anthropicCallID(a, c, i), "name": c.Name, "input": map[string]any{}},
			"input_json_delta", "partial_json", args(c))
	}
	s.frames = append(s.frames,
		jsonFrame("message_delta", map[string]any{
			"type": "message_delta", "usage": anthropicUsage(u),
			"delta": map[string]any{"stop_reason": anthropicStop(r), "stop_sequence": nil},
		}),
		jsonFrame("message_stop", map[string]any{"type": "message_stop"}))
	return s.frames
}

// anthropicFrames are the frames of an answer so far.
type anthropicFrames struct {
	reply  Reply
	frames []frame
	blocks int
}

// block adds a block of content: its start, its text in fragments of the kind
// delta with the text in field, what comes after them, and its end.
func (s *anthropicFrames) block(start map[string]any, delta, field, text string, after ...map[string]any) {
	add := func(event string, fields map[string]any) {
		fields["type"], fields["index"] = event, s.blocks
		s.frames = append(s.frames, jsonFrame(event, fields))
	}
	add("content_block_start", map[string]any{"content_block": start})
	for _, piece := range s.reply.fragments(text) {
		add("content_block_delta", map[string]any{"delta": map[string]any{"type": delta, field: piece}})
	}
	for _, d := range after {
		add("content_block_delta", map[string]any{"delta": d})
	}
	add("content_block_stop", map[string]any{})
	s.blocks++
}

func (anthropicWire) whole(a Asked, r Reply) []byte {
	content := []any{}
	if r.Reasoning != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.Reasoning, "signature": anthropicSignature(r.Reasoning)})
	}
	if r.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": r.Text})
	}
	for i, c := range r.Calls {
		input := json.RawMessage(args(c))
		if !json.Valid(input) {
			input = json.RawMessage(`{}`)
		}
		content = append(content, map[string]any{"type": "tool_use", "id": anthropicCallID(a, c, i), "name": c.Name, "input": input})
	}
	m := anthropicMessage(a, r.usage(a))
	m["content"], m["stop_reason"] = content, anthropicStop(r)
	return mustJSON(m)
}

// anthropicKinds are the names of errors by their status.
var anthropicKinds = map[int]string{
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusPaymentRequired:       "billing_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusInternalServerError:   "api_error",
	http.StatusGatewayTimeout:        "timeout_error",
	529:                              "overloaded_error",
}

func (anthropicWire) failure(r Reply) []byte {
	kind := r.Code
	if kind == "" {
		kind = anthropicKinds[r.Status]
	}
	if kind == "" {
		kind = "api_error"
	}
	return mustJSON(map[string]any{
		"type": "error", "request_id": "req_test",
		"error": map[string]any{"type": kind, "message": r.Message},
	})
}

func (w anthropicWire) late(r Reply) frame {
	if r.Code == "" {
		r.Code = "overloaded_error"
	}
	if r.Message == "" {
		r.Message = "Overloaded"
	}
	return frame{"error", w.failure(r)}
}
