package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"deckhand/internal/llm"
)

// chatWire is OpenAI's chat completions.
type chatWire struct{}

func (chatWire) serves(path string) bool { return strings.HasSuffix(path, "/chat/completions") }

type chatCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCalls  []chatCall      `json:"tool_calls"`
		ToolCallID string          `json:"tool_call_id"`
	} `json:"messages"`
	Tools []struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	} `json:"tools"`
}

func (chatWire) read(_ *http.Request, body []byte) (Asked, error) {
	var in chatRequest
	a := Asked{Wire: Chat}
	if err := json.Unmarshal(body, &in); err != nil {
		return a, fmt.Errorf("the request is not JSON: %w", err)
	}
	a.Model, a.Stream, a.countsWanted = in.Model, in.Stream, in.StreamOptions.IncludeUsage
	for _, t := range in.Tools {
		if err := t.Function.check(); err != nil {
			return a, err
		}
		a.Tools = append(a.Tools, t.Function.Name)
	}
	for i, m := range in.Messages {
		text, images, err := content(m.Content)
		if err != nil {
			return a, fmt.Errorf("messages[%d]: %w", i, err)
		}
		out := llm.Message{Role: llm.Role(m.Role), Text: text, Images: images, Call: m.ToolCallID}
		for _, c := range m.ToolCalls {
			if err := object(c.Function.Arguments); err != nil {
				return a, fmt.Errorf("messages[%d]: %w", i, err)
			}
			out.Calls = append(out.Calls, llm.Call{ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments)})
		}
		switch m.Role {
		case "system", "developer":
			a.System += text
			continue
		case "tool":
			if len(images) > 0 {
				return a, fmt.Errorf("messages[%d]: a tool message has no place for an image", i)
			}
		case "user", "assistant":
		default:
			return a, fmt.Errorf("messages[%d]: unknown role %q", i, m.Role)
		}
		a.Messages = append(a.Messages, out)
	}
	return a, nil
}

// chatDelta is a piece of a streamed message.
type chatDelta struct {
	Role      string          `json:"role,omitempty"`
	Content   *string         `json:"content,omitempty"`
	Reasoning string          `json:"reasoning_content,omitempty"`
	ToolCalls []chatCallDelta `json:"tool_calls,omitempty"`
}

type chatCallDelta struct {
	Index    *int             `json:"index,omitempty"`
	ID       string           `json:"id,omitempty"`
	Type     string           `json:"type,omitempty"`
	Function chatFunctionPart `json:"function"`
}

type chatFunctionPart struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatChoice struct {
	Index        int        `json:"index"`
	Delta        *chatDelta `json:"delta,omitempty"`
	Message      *chatDelta `json:"message,omitempty"`
	FinishReason *string    `json:"finish_reason"`
}

type chatAnswer struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
}

type chatUsage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens,omitempty"`
	} `json:"prompt_tokens_details"`
}

func (chatWire) usage(a Asked, r Reply) *chatUsage {
	u := r.usage(a)
	out := &chatUsage{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output}
	out.PromptDetails.Cached, out.PromptDetails.CacheWrite = u.CacheRead, u.CacheWrite
	return out
}

func (chatWire) reason(r Reply) *string {
	why := "stop"
	switch {
	case r.Cut:
		why = "length"
	case len(r.Calls) > 0:
		why = "tool_calls"
	}
	return &why
}

func (c chatWire) stream(a Asked, r Reply) []frame {
	chunk := chatAnswer{ID: nextID("chatcmpl-"), Object: "chat.completion.chunk", Model: a.Model}
	var frames []frame
	send := func(d chatDelta, reason *string) {
		chunk.Choices = []chatChoice{{Delta: &d, FinishReason: reason}}
		frames = append(frames, jsonFrame("", chunk))
	}
	empty := ""
	send(chatDelta{Role: "assistant", Content: &empty}, nil)
	for _, s := range r.fragments(r.Reasoning) {
		send(chatDelta{Reasoning: s}, nil)
	}
	for _, s := range r.fragments(r.Text) {
		send(chatDelta{Content: &s}, nil)
	}
	for i, call := range r.Calls {
		first := chatCallDelta{Index: &i, ID: call.ID, Type: "function", Function: chatFunctionPart{Name: call.Name}}
		send(chatDelta{ToolCalls: []chatCallDelta{first}}, nil)
		for _, s := range r.fragments(args(call)) {
			send(chatDelta{ToolCalls: []chatCallDelta{{Index: &i, Function: chatFunctionPart{Arguments: s}}}}, nil)
		}
	}
	send(chatDelta{}, c.reason(r))
	if a.countsWanted {
		chunk.Choices, chunk.Usage = []chatChoice{}, c.usage(a, r)
		frames = append(frames, jsonFrame("", chunk))
	}
	return append(frames, frame{data: []byte("[DONE]")})
}

func (c chatWire) whole(a Asked, r Reply) []byte {
	m := chatDelta{Role: "assistant", Content: &r.Text, Reasoning: r.Reasoning}
	for _, call := range r.Calls {
		m.ToolCalls = append(m.ToolCalls, chatCallDelta{ID: call.ID, Type: "function", Function: chatFunctionPart{call.Name, args(call)}})
	}
	return mustJSON(chatAnswer{
		ID: nextID("chatcmpl-"), Object: "chat.completion", Model: a.Model,
		Choices: []chatChoice{{Message: &m, FinishReason: c.reason(r)}}, Usage: c.usage(a, r),
	})
}

func (chatWire) failure(r Reply) []byte { return openaiFailure(r) }

func (chatWire) late(r Reply) frame { return frame{data: openaiFailure(r)} }
