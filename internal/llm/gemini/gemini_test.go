package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/llm"
	"deckhand/internal/llm/gemini"
	"deckhand/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const older, newer = "gemini-2.5-pro", "gemini-3-pro-preview"

// client is an HTTP client of the test's own.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// dial makes a model of a server.
func dial(t *testing.T, s *llmtest.Server, name string, o gemini.Options) llm.Model {
	c := s.Config(llmtest.Gemini, name)
	c.Client = client(t)
	return gemini.New(c, name, o)
}

// heard is a whole answer.
type heard struct {
	text, reasoning string
	calls           []llm.Call
	done            *llm.Done
}

// hear reads an answer to its end.
func hear(ctx context.Context, m llm.Model, req llm.Request) (heard, error) {
	var h heard
	for part, err := range m.Stream(ctx, req) {
		if err != nil {
			return h, err
		}
		h.text += part.Text
		h.reasoning += part.Reasoning
		if part.Call != nil {
			h.calls = append(h.calls, *part.Call)
		}
		if part.Done != nil {
			h.done = part.Done
		}
	}
	return h, nil
}

// message is the answer as the next request shows it.
func (h heard) message() llm.Message {
	return llm.Message{Role: llm.Assistant, Text: h.text, Calls: h.calls, Raw: h.done.Raw}
}

func said(text string) llm.Message { return llm.Message{Role: llm.User, Text: text} }

func ask(messages ...llm.Message) llm.Request {
	return llm.Request{Messages: messages, System: "Be brief.", MaxOutput: 8192, Tools: []llm.Tool{
		{Name: "run", Description: "Runs a command.", Schema: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"command":{"type":"string","minLength":1}},"required":["command"],"additionalProperties":false}`)},
		{Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
		{Name: "bare"},
		{Name: "loose", Schema: json.RawMessage(`{"properties":{"n":{"type":["integer","null"]}}}`)},
	}}
}

// last is the newest request, and fails the test if the server had to complain of any.
func last(t *testing.T, s *llmtest.Server) llmtest.Asked {
	t.Helper()
	if c := s.Complaints(); len(c) > 0 {
		t.Fatalf("the server complained: %q", c)
	}
	all := s.Asked()
	return all[len(all)-1]
}

func TestAnswer(t *testing.T) {
	calls := []llm.Call{
		{ID: "c1", Name: "run", Args: json.RawMessage(`{"command":"echo \"ä\" <&>"}`)},
		{ID: "c2", Name: "look", Args: json.RawMessage(`{}`)},
	}
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{
		Reasoning: "Let me think about öäü.", Text: "I look at it twice.", Calls: calls, Fragment: 5, Cut: true,
		Usage: llm.Usage{Input: 1000, Output: 50, CacheRead: 700},
	}))
	h, err := hear(t.Context(), dial(t, s, newer, gemini.Options{Thinks: true, Window: 1 << 20}), ask(said("Look at it.")))
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "I look at it twice." || h.reasoning != "Let me think about öäü." {
		t.Errorf("heard %q, thinking %q", h.text, h.reasoning)
	}
	if !slices.EqualFunc(h.calls, calls, func(a, b llm.Call) bool {
		return a.ID == b.ID && a.Name == b.Name && string(a.Args) == string(b.Args)
	}) {
		t.Errorf("calls %+v\nwanted %+v", h.calls, calls)
	}
	if want := (llm.Usage{Input: 1000, Output: 50, CacheRead: 700, Window: 1 << 20}); h.done.Usage != want {
		t.Errorf("usage %+v, wanted %+v", h.done.Usage, want)
	}
	if !h.done.Cut {
		t.Error("the answer was cut, which is not told")
	}
	if !strings.HasPrefix(string(h.done.Raw), `{"from":"gemini"`) {
		t.Errorf("raw is %s", h.done.Raw)
	}
	a := last(t, s)
	if a.Model != newer || a.System != "Be brief." || !slices.Equal(a.Tools, []string{"run", "look", "bare", "loose"}) || !a.Stream {
		t.Errorf("asked %+v", a)
	}
	if got := a.Header.Get("X-Goog-Api-Key"); got != "test-key" {
		t.Errorf("the key was %q", got)
	}
}

func TestPlainAnswer(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "Yes."}))
	c := s.Config(llmtest.Gemini, older)
	c.Client, c.BaseURL = client(t), s.URL+"/v1beta/"
	h, err := hear(t.Context(), gemini.New(c, older, gemini.Options{}), llm.Request{Messages: []llm.Message{said("Really?")}})
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "Yes." || h.done.Cut || h.done.Raw != nil {
		t.Errorf("heard %+v", h)
	}
	if body := string(last(t, s).Body); strings.Contains(body, "thinkingConfig") || strings.Contains(body, "systemInstruction") || strings.Contains(body, "tools") {
		t.Errorf("asked for what was not wanted: %s", body)
	}
}

// TestEnvironment shows that the server's own keys and addresses never reach a user's provider.
func TestEnvironment(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "the server's")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "Yes."}))
	c := s.Config(llmtest.Gemini, older)
	c.Client, c.APIKey = client(t), ""
	if _, err := hear(t.Context(), gemini.New(c, older, gemini.Options{}), ask(said("Hi"))); err != nil {
		t.Fatal(err)
	}
	if key := last(t, s).Header.Get("X-Goog-Api-Key"); strings.Contains(key, "server") {
		t.Errorf("the key %q was sent", key)
	}
}

// TestIDs is about models that give their calls no ids, or the same twice.
func TestIDs(t *testing.T) {
	call := llm.Call{Name: "run", Args: json.RawMessage(`{"command":"ls"}`)}
	twice := call
	twice.ID = "same"
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Calls: []llm.Call{call, call, twice, twice}}))
	m := dial(t, s, older, gemini.Options{})
	seen := map[string]bool{}
	for range 2 {
		h, err := hear(t.Context(), m, ask(said("Hi")))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range h.calls {
			if c.ID != "same" && seen[c.ID] || c.ID == "" {
				t.Errorf("the id %q is not the call's own", c.ID)
			}
			seen[c.ID] = true
		}
	}
	if len(seen) != 7 {
		t.Errorf("8 calls have the ids %v", seen)
	}
}

func TestStopListening(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "a long answer that never ends", Break: llmtest.Hang}))
	for part, err := range dial(t, s, older, gemini.Options{}).Stream(t.Context(), ask(said("Hi"))) {
		if err != nil || part.Text == "" {
			t.Fatalf("part %+v, %v", part, err)
		}
		break
	}
	<-last(t, s).Gone
}

func TestCancel(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "a long answer that never ends", Break: llmtest.Hang}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended error
	for part, err := range dial(t, s, older, gemini.Options{}).Stream(ctx, ask(said("Hi"))) {
		if ended = err; err == nil && part.Text != "" {
			cancel()
		}
	}
	if !errors.Is(ended, context.Canceled) {
		t.Errorf("it ended with %v", ended)
	}
	<-last(t, s).Gone
}
