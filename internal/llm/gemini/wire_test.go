package gemini_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/gemini"
)

// recorder keeps the request that it is sent, and answers with nothing.
type recorder struct {
	address string
	body    string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	r.address, r.body = req.URL.String(), string(body)
	return canned("").respond(req), err
}

// TestRequestBytes compares whole requests with recorded ones.
func TestRequestBytes(t *testing.T) {
	call := func(id, args string) llm.Call { return llm.Call{ID: id, Name: "run", Args: json.RawMessage(args)} }
	kept := `{"from":"gemini","model":"gemini-2.5-pro","pieces":[{"text":11,"signature":"c2ln"},{"call":true,"signature":"/+8="}]}`
	full := ask(
		llm.Message{Role: llm.User, Text: "Look at <this> & \"that\" ä\u2028\x01\xff.", Images: []string{dot, "https://example.com/a.png"}},
		llm.Message{Role: llm.Assistant, Text: "I run <ls>.", Calls: []llm.Call{call("a", `{ "z": "ls <&>", "n": 12345678901234567890, "f": 1e2, "command": null }`)}, Raw: json.RawMessage(kept)},
		llm.Message{Role: llm.ToolResult, Call: "a", Text: "files", Images: []string{dot}, Failed: true},
		llm.Message{Role: llm.Assistant, Calls: []llm.Call{call("b", `"{cut"`), call("c", `{}`)}},
		llm.Message{Role: llm.ToolResult, Call: "b"},
		llm.Message{Role: llm.ToolResult, Call: "c", Text: "a\nb", Name: "run"},
		said("Go on."),
	)
	for _, test := range []struct {
		file, model string
		options     gemini.Options
		req         llm.Request
	}{
		{"full", older, gemini.Options{Thinks: true}, full},
		{"newer", newer, gemini.Options{}, full},
		{"bare", older, gemini.Options{}, llm.Request{Messages: []llm.Message{said("Hi")}}},
	} {
		r := &recorder{}
		m := gemini.New(llm.Config{APIKey: "test-key", BaseURL: "http://192.0.2.1/api", Client: &http.Client{Transport: r}}, test.model, test.options)
		_, _ = hear(t.Context(), m, test.req) // there is no answer
		file := filepath.Join("testdata", test.file+".txt")
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.address + "\n" + strings.TrimSpace(r.body) + "\n"; got != string(want) {
			t.Errorf("%s: sent\n%s\nwanted\n%s", test.file, got, want)
		}
	}
}
