package connect_test

import (
	"net/http"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/llmtest"
)

// How much a model reasons is said in each provider's words, and not to models that do not reason.
func TestEffort(t *testing.T) {
	t.Parallel()
	thinks := true
	for _, c := range []struct{ model, path, effort, want string }{
		{"anthropic/claude-opus-4-6", "", "low", `"output_config":{"effort":"low"}`},
		{"anthropic/claude-opus-4-6", "", "", ""},
		{"anthropic/claude-sonnet-4-5", "", "low", `"budget_tokens":1024`},
		{"anthropic/claude-sonnet-4-5", "", "high", `"budget_tokens":6144`},
		{"gemini/gemini-2.5-pro", "", "low", `"thinkingBudget":1024`},
		{"gemini/gemini-3-pro-preview", "", "high", `"thinkingLevel":"high"`},
		{"openai/responses/gpt-5", "/v1", "medium", `"effort":"medium"`},
		{"acme/thinker", "/v1", "high", `"reasoning_effort":"high"`},
		{"openai/gpt-4o", "/v1", "high", ""},
	} {
		server := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "yes"}))
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		m, err := connect.Open(llm.Config{Model: c.model, BaseURL: server.URL + c.path, Effort: c.effort, Client: &http.Client{Transport: transport}},
			catalogue.New(map[string]catalogue.Override{"acme/thinker": {Thinks: &thinks}}))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}, MaxOutput: 8192}) {
			if err != nil {
				t.Fatal(c.model, err)
			}
		}
		body := string(server.Asked()[0].Body)
		if !strings.Contains(body, c.want) || c.want == "" && strings.Contains(body, "effort") {
			t.Errorf("%s with %q was sent %s", c.model, c.effort, body)
		}
	}
}
