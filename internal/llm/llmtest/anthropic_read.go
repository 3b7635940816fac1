package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"deckhand/internal/llm"
)

type anthropicRequest struct {
	Model     string
	MaxTokens int64 `json:"max_tokens"`
	Stream    bool
	System    json.RawMessage
	Messages  []struct {
		Role    string
		Content json.RawMessage
	}
	Tools []struct {
		Name         string
		CacheControl json.RawMessage `json:"cache_control"`
	}
	Thinking struct {
		Type         string
		BudgetTokens int64 `json:"budget_tokens"`
	}
}

type anthropicBlock struct {
	Type         string
	Text         string
	ID           string
	Name         string
	Input        json.RawMessage
	ToolUseID    string `json:"tool_use_id"`
	Content      json.RawMessage
	IsError      bool `json:"is_error"`
	Thinking     string
	Signature    string
	Data         string
	CacheControl json.RawMessage `json:"cache_control"`
	Source       struct {
		Type      string
		MediaType string `json:"media_type"`
		Data      string
	}
}

func (anthropicWire) read(r *http.Request, body []byte) (Asked, error) {
	var in anthropicRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return Asked{}, err
	}
	a := Asked{Wire: Anthropic, Model: in.Model, Stream: in.Stream}
	v := anthropicReader{asked: &a, thinks: in.Thinking.Type != "" && in.Thinking.Type != "disabled"}
	switch {
	case r.Header.Get("anthropic-version") == "":
		return a, errors.New("anthropic-version: header is required")
	case in.MaxTokens < 1:
		return a, errors.New("max_tokens: Field required")
	case in.Thinking.Type == "enabled" && (in.Thinking.BudgetTokens < 1024 || in.Thinking.BudgetTokens >= in.MaxTokens):
		return a, errors.New("thinking.budget_tokens: must be at least 1024 and less than max_tokens")
	}
	system, err := v.blocks(in.System)
	if err != nil {
		return a, fmt.Errorf("system: %w", err)
	}
	for _, b := range system {
		a.System += b.Text
	}
	for _, t := range in.Tools {
		v.cached(t.CacheControl)
		a.Tools = append(a.Tools, t.Name)
	}
	for i, m := range in.Messages {
		blocks, err := v.blocks(m.Content)
		if err == nil {
			err = v.message(m.Role, blocks)
		}
		if err != nil {
			return a, fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if v.breakpoints > 4 {
		return a, fmt.Errorf("a maximum of 4 blocks with cache_control may be provided. Found %d", v.breakpoints)
	}
	if in.Thinking.Type == "enabled" && v.unthought {
		return a, errors.New("expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block")
	}
	return a, nil
}

// anthropicReader reads messages one by one and knows what stood before.
type anthropicReader struct {
	asked       *Asked
	thinks      bool
	role        string // of the message before
	breakpoints int
	// looping is true from an assistant's message until a person's that has no
	// results in it; unthought says that the first of these began without thinking.
	looping   bool
	unthought bool
}

func (v *anthropicReader) cached(control json.RawMessage) {
	if len(control) > 0 {
		v.breakpoints++
	}
}

// blocks reads content, which may also be a plain text.
func (v *anthropicReader) blocks(content json.RawMessage) ([]anthropicBlock, error) {
	var text string
	if len(content) == 0 {
		return nil, nil
	}
	if json.Unmarshal(content, &text) == nil {
		return []anthropicBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, err
	}
	for _, b := range blocks {
		v.cached(b.CacheControl)
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
			return nil, errors.New("text content blocks must contain non-whitespace text")
		case b.Type == "thinking" && v.thinks && b.Signature != anthropicSignature(b.Thinking):
			return nil, errors.New("invalid `signature` in `thinking` block")
		case b.Type == "image" && (b.Source.Type != "base64" || b.Source.Data == ""):
			return nil, errors.New("could not process image")
		}
	}
	return blocks, nil
}

func (v *anthropicReader) message(role string, blocks []anthropicBlock) error {
	if role == v.role {
		return fmt.Errorf("roles must alternate between \"user\" and \"assistant\", but found multiple %q roles in a row", role)
	}
	v.role = role
	if len(blocks) == 0 {
		return errors.New("all messages must have non-empty content")
	}
	switch role {
	case "assistant":
		return v.assistant(blocks)
	case "user":
		return v.user(blocks)
	}
	return fmt.Errorf("unknown role %q", role)
}

func (v *anthropicReader) assistant(blocks []anthropicBlock) error {
	m := llm.Message{Role: llm.Assistant}
	for _, b := range blocks {
		switch b.Type {
		case "thinking", "redacted_thinking":
		case "text":
			m.Text += b.Text
		case "tool_use":
			if !bytes.HasPrefix(b.Input, []byte("{")) {
				return errors.New("tool_use.input: Input should be a valid dictionary")
			}
			m.Calls = append(m.Calls, llm.Call{ID: b.ID, Name: b.Name, Args: b.Input})
		default:
			return fmt.Errorf("unknown block type %q", b.Type)
		}
	}
	if !v.looping {
		v.looping, v.unthought = true, !strings.HasSuffix(blocks[0].Type, "thinking") && len(m.Calls) > 0
	}
	v.asked.Messages = append(v.asked.Messages, m)
	return nil
}

func (v *anthropicReader) user(blocks []anthropicBlock) error {
	var said []llm.Message // the wire joins what people said one after the other: each text begins anew
	results := 0
	for i, b := range blocks {
		switch b.Type {
		case "tool_result":
			if i != results {
				return errors.New("tool_result blocks must come first in the message")
			}
			results++
			m := llm.Message{Role: llm.ToolResult, Call: b.ToolUseID, Failed: b.IsError}
			inner, err := v.blocks(b.Content)
			if err != nil {
				return err
			}
			for _, c := range inner {
				c.into(&m)
			}
			v.asked.Messages = append(v.asked.Messages, m)
		case "text", "image":
			if len(said) == 0 || b.Type == "text" {
				said = append(said, llm.Message{Role: llm.User})
			}
			b.into(&said[len(said)-1])
		default:
			return fmt.Errorf("unknown block type %q", b.Type)
		}
	}
	if results == 0 {
		v.looping, v.unthought = false, false
	}
	v.asked.Messages = append(v.asked.Messages, said...)
	return nil
}

// into adds a text or an image to a message.
func (b anthropicBlock) into(m *llm.Message) {
	if b.Type == "image" {
		m.Images = append(m.Images, "data:"+b.Source.MediaType+";base64,"+b.Source.Data)
		return
	}
	if m.Text != "" {
		m.Text += "\n"
	}
	m.Text += b.Text
}
