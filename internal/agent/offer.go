package agent

import (
	"context"
	"encoding/json"
	"sync"

	"deckhand/internal/llm"
	"deckhand/internal/tool"
)

// refresh finds out what the model may call now. The list keeps its order, and is only described anew when it changed: it stands
// before everything else the model is shown, so every change costs the provider's cache. It reports one.
func (w *worker) refresh(ctx context.Context, p Profile) (changed bool) {
	tools := p.Tools
	if p.More != nil {
		tools = append(tools[:len(tools):len(tools)], p.More(ctx)...)
	}
	if w.offer != nil && same(w.tools, tools) {
		return false
	}
	w.tools = tools
	w.offer = make([]llm.Tool, len(tools))
	for i, t := range tools {
		s := t.Spec()
		w.offer[i] = llm.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema}
		if p.Analyzer == "llm" && !s.Harmless {
			w.offer[i].Schema = rated(s.Schema)
		}
	}
	return true
}

// same compares what the model would be told.
func same(a, b []tool.Tool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i].Spec(), b[i].Spec()
		if x.Name != y.Name || x.Description != y.Description || string(x.Schema) != string(y.Schema) {
			return false
		}
	}
	return true
}

// offered is how many bytes the descriptions have.
func (w *worker) offered() int {
	n := 0
	for _, t := range w.offer {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

func find(tools []tool.Tool, name string) tool.Tool {
	for _, t := range tools {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

// wired keeps what wireTools returned last: most conversations have the same tools.
type wired struct {
	mu    sync.Mutex
	tools []tool.Tool
	raw   json.RawMessage
}

func (w *wired) of(tools []tool.Tool) json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !same(w.tools, tools) {
		w.tools, w.raw = tools, wireTools(tools)
	}
	return w.raw
}

// wireTools is what clients are told of the tools that are always there, in the shape they know.
func wireTools(tools []tool.Tool) json.RawMessage {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	type described struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	if len(tools) == 0 {
		return nil
	}
	out := make([]described, len(tools))
	for i, t := range tools {
		s := t.Spec()
		out[i] = described{"function", function{s.Name, s.Description, s.Schema}}
	}
	raw, _ := json.Marshal(out) // a schema that is not JSON is the tool's mistake, not a reason to stop
	return raw
}
