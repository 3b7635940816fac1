package connect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/outbound"
)

// An address that the server's rules refuse is refused once: the person is told
// what to do about it, not after five attempts.
func TestForbiddenAddressIsNotTriedAgain(t *testing.T) {
	client := outbound.NewClient(outbound.Policy{}, time.Minute)
	defer client.CloseIdleConnections()
	for _, model := range []string{"openai/gpt-4o", "openai/o1-pro", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro", "ollama/llama3"} {
		t.Run(model, func(t *testing.T) {
			m, err := connect.Open(llm.Config{Model: model, APIKey: "test-key", BaseURL: "http://127.0.0.1:9", Client: client}, catalogue.New(nil))
			if err != nil {
				t.Fatal(err)
			}
			req := llm.Request{Model: model, Messages: []llm.Message{{Role: llm.User, Text: "Hi"}}, MaxOutput: 100}
			for _, err := range m.Stream(t.Context(), req) {
				var e *llm.Error
				if !errors.As(err, &e) || e.Retry() || !e.Unsent || !strings.Contains(e.Message, "--allow-private") {
					t.Fatalf("it ended with %#v", err)
				}
				return
			}
			t.Error("it said nothing")
		})
	}
}
