package connect_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/llmtest"
)

// Wires on which calls come in fragments tell of each call once, before it is complete.
func TestCallsAreAnnounced(t *testing.T) {
	server := llmtest.New(t, func(llmtest.Asked) llmtest.Reply {
		return llmtest.Reply{Fragment: 3, Calls: []llm.Call{{ID: "c1", Name: "note", Args: []byte(`{"word":"apple"}`)}, {ID: "c2", Name: "list", Args: []byte(`{"word":"pear"}`)}}}
	})
	schema := json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}}}`)
	for wire, name := range map[llmtest.Wire]string{llmtest.Chat: "gpt-4o", llmtest.Responses: "gpt-5", llmtest.Anthropic: "claude-sonnet-4-5"} {
		t.Run(string(wire), func(t *testing.T) {
			c := server.Config(wire, name)
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			c.Client = &http.Client{Transport: tr}
			m, err := connect.Open(c, catalogue.New(nil))
			if err != nil {
				t.Fatal(err)
			}
			var announced []string
			complete := 0
			req := llm.Request{MaxOutput: 2000, Messages: []llm.Message{{Role: llm.User, Text: "hi"}},
				Tools:   []llm.Tool{{Name: "note", Description: "d", Schema: schema}, {Name: "list", Description: "d", Schema: schema}},
				Calling: func(tool string) { announced = append(announced, tool) }}
			for p, err := range m.Stream(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
				if p.Call != nil {
					if complete++; len(announced) < complete || announced[complete-1] != p.Call.Name {
						t.Errorf("the call of %s is complete, and %v were announced", p.Call.Name, announced)
					}
				}
			}
			if !slices.Equal(announced, []string{"note", "list"}) || complete != 2 {
				t.Errorf("%v were announced, %d complete", announced, complete)
			}
		})
	}
}
