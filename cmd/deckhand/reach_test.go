package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/api"
	"deckhand/internal/config"
)

func TestOnlyALocalServerReachesPrivateAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags config.ListenFlags
		want  bool
	}{
		{config.ListenFlags{Addr: "127.0.0.1:3000"}, true},
		{config.ListenFlags{Addr: "[::1]:3000", PublicURL: "http://localhost:3000/deckhand", AllowHost: []string{"localhost", "a.localhost", "127.0.0.1"}}, true},
		{config.ListenFlags{Addr: "0.0.0.0:3000"}, false},
		{config.ListenFlags{Addr: "127.0.0.1:3000", BehindProxy: true}, false},
		{config.ListenFlags{Addr: "127.0.0.1:3000", PublicURL: "https://deckhand.example.org"}, false},
		{config.ListenFlags{Addr: "127.0.0.1:3000", PublicURL: "https://127.0.0.1.example.org"}, false},
		{config.ListenFlags{Addr: "127.0.0.1:3000", PublicURL: "https://192.0.2.1"}, false},
		{config.ListenFlags{Addr: "127.0.0.1:3000", AllowHost: []string{"localhost", "deckhand.example.org"}}, false},
	} {
		got, err := c.flags.Reach()
		if err != nil || got.AllowAllPrivate != c.want {
			t.Errorf("%+v: %v, %v", c.flags, got, err)
		}
	}
}

// A service in the operator's network, which no user has any business with. It
// answers in the ways in which such services do.
func internalService(t *testing.T, canary string) (base string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case strings.HasPrefix(r.URL.Path, "/json"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"password":%q,"detail":{"inner":%q}}`, canary, canary)
		case strings.HasPrefix(r.URL.Path, "/ok"):
			fmt.Fprint(w, canary)
		default:
			http.Error(w, canary, http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// askAll makes the server ask an address in every way that a user can choose one, and
// returns all that the user is told.
func (b *box) askAll(base string) string {
	b.t.Helper()
	var told strings.Builder
	for _, path := range []string{"/plain", "/json", "/ok"} {
		for _, model := range []string{"openai/x", "openai/responses/x", "anthropic/x", "gemini/x"} {
			body := fmt.Sprintf(`{"llm_model":%q,"llm_api_key":"sk-123456789","llm_base_url":%q}`, model, base+path)
			_, text, _ := b.raw("POST", "/api/settings/test-model", body)
			told.WriteString(text)
		}
		for _, kind := range []string{"sse_servers", "shttp_servers"} {
			_, text, _ := b.raw("POST", "/api/settings/test-mcp", fmt.Sprintf(`{%q:[{"url":%q}]}`, kind, base+path))
			told.WriteString(text)
		}
		made := b.hook(base + path)
		if _, err := b.client.TestWebhook(b.t.Context(), made.ID); err != nil {
			b.t.Fatal(err)
		}
		if d := b.tried(made.ID); d.Error != nil {
			told.WriteString(*d.Error)
		}
		body := fmt.Sprintf(`{"provider_tokens":{"gitlab":{"token":"glpat-123456789","host":%q}}}`, base)
		_, text, _ := b.raw("POST", "/api/add-git-providers", body)
		told.WriteString(text)
	}
	return told.String()
}

// Behind a proxy, a server on loopback keeps its users out of its own network, and of
// what the operator permits they are not told more than that it is no model.
func TestPrivateNetworkBehindAProxy(t *testing.T) {
	t.Parallel()
	const canary = "internal-canary-4711"
	base, asked := internalService(t, canary)
	b := serve(t, "", "--behind-proxy")
	told := b.askAll(base)
	if asked.Load() != 0 || strings.Count(told, "--allow-private 127.0.0.1:") < 6 {
		t.Errorf("it was asked %d times; the user was told %s", asked.Load(), told)
	}
	b.stop()

	b = serve(t, "", "--behind-proxy", "--allow-private", strings.TrimPrefix(base, "http://"))
	if _, err := b.client.StoreSettings(t.Context(), api.SettingsInput{LLMModel: api.Some("scripted/demo")}); err != nil {
		t.Fatal(err)
	}
	told = b.askAll(base)
	if asked.Load() == 0 || strings.Contains(told, canary) {
		t.Errorf("it was asked %d times; the user was told %s", asked.Load(), told)
	}
}
