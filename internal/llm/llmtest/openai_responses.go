package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"deckhand/internal/llm"
)

// responsesWire is OpenAI's responses.
type responsesWire struct{}

func (responsesWire) serves(path string) bool { return strings.HasSuffix(path, "/responses") }

type responsesRequest struct {
	Model        string            `json:"model"`
	Stream       bool              `json:"stream"`
	Store        *bool             `json:"store"`
	Instructions string            `json:"instructions"`
	Include      []string          `json:"include"`
	Input        []json.RawMessage `json:"input"`
	Tools        []function        `json:"tools"`
}

// inputItem is one entry of the input: the fields of all kinds together.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
}

// encrypted is how the server's reasoning begins; a client cannot read it, and
// must give it back as it is.
const encrypted = "sealed:"

func (responsesWire) read(_ *http.Request, body []byte) (Asked, error) {
	var in responsesRequest
	a := Asked{Wire: Responses}
	if err := json.Unmarshal(body, &in); err != nil {
		return a, fmt.Errorf("the request is not JSON: %w", err)
	}
	a.Model, a.Stream, a.System = in.Model, in.Stream, in.Instructions
	a.sealWanted = slices.Contains(in.Include, "reasoning.encrypted_content")
	for _, t := range in.Tools {
		if err := t.check(); err != nil {
			return a, err
		}
		a.Tools = append(a.Tools, t.Name)
	}
	var thoughts []json.RawMessage // wait for the message that they belong to
	for i, raw := range in.Input {
		var item inputItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return a, fmt.Errorf("input[%d]: %w", i, err)
		}
		if item.Type == "reasoning" {
			if in.Store != nil && !*in.Store && !strings.HasPrefix(item.Encrypted, encrypted) {
				return a, fmt.Errorf("input[%d]: the reasoning was not stored and is not given back as it was", i)
			}
			thoughts = append(thoughts, raw)
			continue
		}
		if err := a.add(item, thoughts); err != nil {
			return a, fmt.Errorf("input[%d]: %w", i, err)
		}
		thoughts = nil
	}
	if thoughts != nil {
		return a, errors.New("a reasoning item stands without the item that followed it")
	}
	return a, nil
}

// add puts an item to the messages. What an assistant says and asks for in one
// go are several items, but one message.
func (a *Asked) add(item inputItem, thoughts []json.RawMessage) error {
	m := llm.Message{Role: llm.Role(item.Role), Call: item.CallID}
	raw := item.Content
	switch item.Type {
	case "", "message":
		if item.Role == "system" || item.Role == "developer" {
			text, _, err := content(raw)
			a.System += text
			return err
		}
		if item.Role != "user" && item.Role != "assistant" {
			return fmt.Errorf("unknown role %q", item.Role)
		}
	case "function_call":
		if err := object(item.Arguments); err != nil {
			return err
		}
		m.Role, m.Call = llm.Assistant, ""
		m.Calls = []llm.Call{{ID: item.CallID, Name: item.Name, Args: json.RawMessage(item.Arguments)}}
	case "function_call_output":
		m.Role, raw = llm.ToolResult, item.Output
	default:
		return fmt.Errorf("unknown type %q", item.Type)
	}
	var err error
	if m.Text, m.Images, err = content(raw); err != nil {
		return err
	}
	if thoughts != nil {
		if m.Role != llm.Assistant {
			return errors.New("a reasoning item stands without the item that followed it")
		}
		m.Raw = mustJSON(thoughts)
	}
	if n := len(a.Messages); n > 0 && m.Role == llm.Assistant && len(m.Calls) > 0 && m.Raw == nil && a.Messages[n-1].Role == llm.Assistant {
		a.Messages[n-1].Calls = append(a.Messages[n-1].Calls, m.Calls...)
		return nil
	}
	a.Messages = append(a.Messages, m)
	return nil
}

// outputItem is one entry of the output: the fields of all kinds together.
type outputItem struct {
	Type      string       `json:"type"`
	ID        string       `json:"id"`
	Status    string       `json:"status,omitempty"`
	Role      string       `json:"role,omitempty"`
	Content   []outputPart `json:"content,omitzero"`
	Summary   []outputPart `json:"summary,omitzero"`
	Encrypted string       `json:"encrypted_content,omitempty"`
	CallID    string       `json:"call_id,omitempty"`
	Name      string       `json:"name,omitempty"`
	Arguments *string      `json:"arguments,omitempty"`
}

type outputPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []int  `json:"annotations,omitzero"`
}

type responsesAnswer struct {
	ID         string          `json:"id"`
	Object     string          `json:"object"`
	CreatedAt  int64           `json:"created_at"`
	Status     string          `json:"status"`
	Model      string          `json:"model"`
	Output     []outputItem    `json:"output"`
	Incomplete json.RawMessage `json:"incomplete_details"`
	Error      json.RawMessage `json:"error"`
	Usage      *responsesUsage `json:"usage"`
}

type responsesUsage struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens,omitempty"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int64 `json:"total_tokens"`
}

// items are the entries of an answer.
func (responsesWire) items(a Asked, r Reply) []outputItem {
	items := []outputItem{}
	if r.Reasoning != "" {
		item := outputItem{Type: "reasoning", ID: nextID("rs_"), Summary: []outputPart{{Type: "summary_text", Text: r.Reasoning}}}
		if a.sealWanted {
			item.Encrypted = encrypted + nextID("")
		}
		items = append(items, item)
	}
	if r.Text != "" {
		part := outputPart{Type: "output_text", Text: r.Text, Annotations: []int{}}
		items = append(items, outputItem{Type: "message", ID: nextID("msg_"), Status: "completed", Role: "assistant", Content: []outputPart{part}})
	}
	for _, c := range r.Calls {
		text := args(c)
		items = append(items, outputItem{Type: "function_call", ID: nextID("fc_"), Status: "completed", CallID: c.ID, Name: c.Name, Arguments: &text})
	}
	return items
}

// answer is the whole answer.
func (w responsesWire) answer(a Asked, r Reply) responsesAnswer {
	u := r.usage(a)
	usage := &responsesUsage{Input: u.Input, Output: u.Output, Total: u.Input + u.Output}
	usage.InputDetails.Cached, usage.InputDetails.CacheWrite = u.CacheRead, u.CacheWrite
	usage.OutputDetails.Reasoning = int64(len(r.Reasoning) / 4)
	out := responsesAnswer{
		ID: nextID("resp_"), Object: "response", Status: "completed", Model: a.Model,
		Output: w.items(a, r), Usage: usage,
	}
	if r.Cut {
		out.Status, out.Incomplete = "incomplete", json.RawMessage(`{"reason":"max_output_tokens"}`)
	}
	return out
}

func (w responsesWire) whole(a Asked, r Reply) []byte { return mustJSON(w.answer(a, r)) }

func (responsesWire) failure(r Reply) []byte { return openaiFailure(r) }

func (responsesWire) late(r Reply) frame {
	return jsonFrame("error", map[string]any{"type": "error", "code": r.Code, "message": r.Message, "param": nil, "sequence_number": 0})
}
