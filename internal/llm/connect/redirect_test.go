package connect_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/outbound"
)

// wires is a model for each way of talking to a provider.
var wires = []string{"openai/gpt-4o", "openai/responses/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro", "ollama/llama3"}

// failure is what a model at an address ends with.
func failure(t *testing.T, client *http.Client, model, base string) *llm.Error {
	t.Helper()
	m, err := connect.Open(llm.Config{Model: model, APIKey: "test-key", BaseURL: base, Client: client}, catalogue.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	req := llm.Request{Model: model, Messages: []llm.Message{{Role: llm.User, Text: "Hi"}}, MaxOutput: 100}
	for _, err := range m.Stream(t.Context(), req) {
		var e *llm.Error
		if !errors.As(err, &e) {
			t.Fatalf("it ended with %#v", err)
		}
		return e
	}
	t.Fatal("it said nothing")
	return nil
}

// The key and the conversation belong to the server that the user named.
func TestRedirectToAnotherHostIsNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the other host was asked for %s", r.URL) }))
	defer other.Close()
	client := outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, time.Minute)
	defer client.CloseIdleConnections()
	for _, model := range wires {
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			named := httptest.NewServer(http.RedirectHandler(other.URL, status))
			e := failure(t, client, model, named.URL)
			if e.Class != llm.ClassRequest || e.Retry() || e.Unsent || !strings.Contains(e.Message, "redirects to another host") {
				t.Errorf("%s, %d: it ended with %#v", model, status, e)
			}
			named.Close()
		}
	}
}

// A redirect that leads nowhere is no answer either.
func TestRedirectWithoutAddress(t *testing.T) {
	named := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }))
	defer named.Close()
	client := outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, time.Minute)
	defer client.CloseIdleConnections()
	for _, model := range wires {
		if e := failure(t, client, model, named.URL); e.Class != llm.ClassRequest || !strings.Contains(e.Message, "304") {
			t.Errorf("%s: it ended with %#v", model, e)
		}
	}
}
