package connect_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/llmtest"
)

// What a model made up, or another one's server gave, must not have the rest of
// the conversation refused.
func TestHistoryIsAcceptable(t *testing.T) {
	const kimi, long = "functions.bash:0", "call_with_a_signature_that_is_longer_than_forty_characters"
	messages := []llm.Message{
		{Role: llm.User, Text: "Go"},
		{Role: llm.Assistant, Calls: []llm.Call{
			{ID: kimi, Name: "bash<|channel|>commentary", Args: []byte(`{}`)}, {ID: long, Name: "", Args: []byte(`{}`)},
			{ID: "fine-1", Name: "bash", Args: []byte(`{}`)}, {ID: "d", Name: "3d", Args: []byte(`{}`)}, {ID: "x", Name: strings.Repeat("x", 100), Args: []byte(`{}`)}}},
		{Role: llm.ToolResult, Call: kimi, Name: "bash<|channel|>commentary", Text: "There is no such tool."},
		{Role: llm.ToolResult, Call: long, Text: "There is no such tool."},
		{Role: llm.ToolResult, Call: "fine-1", Name: "bash", Text: "ok"},
		{Role: llm.ToolResult, Call: "d", Name: "3d", Text: "ok"},
		{Role: llm.ToolResult, Call: "x", Name: strings.Repeat("x", 100), Text: "ok"},
	}
	for _, c := range []struct {
		model, base string
		ids         bool // they are made acceptable too
	}{
		{"openai/gpt-4o", "", true}, {"openai/gpt-5", "", true}, {"azure/x", "https://x.openai.azure.com", true}, {"anthropic/claude-sonnet-4-5", "", true},
		{"gemini/gemini-2.5-pro", "", false}, {"acme/kimi", "https://llm.acme.example/v1", false},
	} {
		body := ask(t, llm.Config{Model: c.model, BaseURL: c.base, APIKey: "k"}, catalogue.New(nil), llm.Request{Messages: messages}).body
		for _, bad := range []string{"channel|", `"name":""`, `"3d"`, strings.Repeat("x", 65)} {
			if strings.Contains(body, bad) {
				t.Errorf("%s is sent %s: %s", c.model, bad, body)
			}
		}
		if strings.Contains(body, kimi) == c.ids || strings.Contains(body, long) == c.ids || strings.Count(body, `"fine-1"`) != 2 || !strings.Contains(body, "bash__channel__commentary") {
			t.Errorf("%s: %s", c.model, body)
		}
	}
	if m := messages[1].Calls[0]; m.ID != kimi || m.Name != "bash<|channel|>commentary" || messages[2].Call != kimi {
		t.Error("the caller's messages were changed")
	}
}

// Names in messages that come later are replaced too, though the beginning is not looked at again.
func TestLaterNames(t *testing.T) {
	written := &llm.Written{}
	messages := []llm.Message{{Role: llm.User, Text: "go"}}
	for _, name := range []string{"bash", "bash<|x|>", "bash"} {
		messages = append(messages,
			llm.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "a", Name: name, Args: json.RawMessage("{}")}}},
			llm.Message{Role: llm.ToolResult, Call: "a", Name: name, Text: "ok"})
		body := ask(t, llm.Config{Model: "openai/gpt-4o", APIKey: "k"}, catalogue.New(nil), llm.Request{Messages: messages, Written: written}).body
		if strings.Contains(body, "<|x|>") || strings.Count(body, `"name":"bash`) != len(messages)/2 {
			t.Errorf("after %q: %s", name, body)
		}
	}
}

// An image that the provider refuses is left out, and said to be.
func TestRefusedImage(t *testing.T) {
	refuse := func(a llmtest.Asked) bool {
		for _, m := range a.Messages {
			if len(m.Images) > 0 {
				return true
			}
		}
		return false
	}
	for wire, name := range map[llmtest.Wire]string{llmtest.Chat: "gpt-4o", llmtest.Responses: "gpt-5", llmtest.Anthropic: "claude-sonnet-4-5", llmtest.Gemini: "gemini-2.5-pro"} {
		t.Run(string(wire), func(t *testing.T) {
			message := "Could not process image"
			server := llmtest.New(t, func(a llmtest.Asked) llmtest.Reply {
				if refuse(a) {
					return llmtest.Reply{Status: http.StatusBadRequest, Message: message}
				}
				return llmtest.Reply{Text: "I see nothing"}
			})
			c := server.Config(wire, name)
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			c.Client = &http.Client{Transport: tr}
			m, err := connect.Open(c, catalogue.New(nil))
			if err != nil {
				t.Fatal(err)
			}
			heard := func() (text string, err error) {
				for p, failed := range m.Stream(t.Context(), llm.Request{MaxOutput: 2000, Messages: []llm.Message{{Role: llm.User, Text: "Look", Images: []string{"data:image/png;base64,iVBORw0KGgo="}}}}) {
					text, err = text+p.Text, failed
				}
				return text, err
			}
			text, err := heard()
			asked := server.Asked()
			if err != nil || text != "I see nothing" || len(asked) != 2 || !strings.Contains(string(asked[1].Body), "refused it") {
				t.Errorf("%q %v after %d requests", text, err, len(asked))
			}
			message = "There is no such model" // which has nothing to do with images
			if _, err := heard(); err == nil || len(server.Asked()) != 3 {
				t.Errorf("%v after %d requests", err, len(server.Asked()))
			}
		})
	}
}
