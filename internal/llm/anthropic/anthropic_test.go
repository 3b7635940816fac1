package anthropic_test

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
	"deckhand/internal/llm/anthropic"
	"deckhand/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const old, recent = "claude-sonnet-4-5", "claude-opus-4-6"

// client is an HTTP client of the test's own.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// dial makes a model of a server.
func dial(t *testing.T, s *llmtest.Server, name string, o anthropic.Options) llm.Model {
	c := s.Config(llmtest.Anthropic, name)
	c.Client = client(t)
	return anthropic.New(c, name, o)
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
		{Name: "run", Description: "Runs a command.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
		{Name: "look", Schema: json.RawMessage(`{"properties":{}}`)},
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
		{ID: "toolu_1", Name: "run", Args: json.RawMessage(`{"command":"echo \"ä\" <&>"}`)},
		{ID: "toolu_2", Name: "look", Args: json.RawMessage(`{}`)},
		{ID: "toolu_3", Name: "run", Args: json.RawMessage(`"{\"command\": \"cut o"`)},
	}
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{
		Reasoning: "Let me think about öäü.", Text: "I look at it twice.", Calls: calls, Fragment: 5, Cut: true,
		Usage: llm.Usage{Input: 1000, Output: 50, CacheRead: 700, CacheWrite: 200},
	}))
	h, err := hear(t.Context(), dial(t, s, recent, anthropic.Options{Thinks: true, Window: 200000}), ask(said("Look at it.")))
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "I look at it twice." || h.reasoning != "Let me think about öäü." {
		t.Errorf("heard %q, thinking %q", h.text, h.reasoning)
	}
	if got, want := string(mustJSON(t, h.calls)), string(mustJSON(t, calls)); got != want {
		t.Errorf("calls %s\nwanted %s", got, want)
	}
	if want := (llm.Usage{Input: 1000, Output: 50, CacheRead: 700, CacheWrite: 200, Window: 200000}); h.done.Usage != want {
		t.Errorf("usage %+v, wanted %+v", h.done.Usage, want)
	}
	if !h.done.Cut {
		t.Error("the answer was cut, which is not told")
	}
	if !strings.HasPrefix(string(h.done.Raw), `{"from":"anthropic"`) {
		t.Errorf("raw is %s", h.done.Raw)
	}
	a := last(t, s)
	if a.Model != recent || a.System != "Be brief." || !slices.Equal(a.Tools, []string{"run", "look"}) || !a.Stream {
		t.Errorf("asked %+v", a)
	}
	if got := a.Header.Get("X-Api-Key"); got != "test-key" {
		t.Errorf("the key was %q", got)
	}
}

func TestPlainAnswer(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "Yes."}))
	c := s.Config(llmtest.Anthropic, old)
	c.Client, c.BaseURL = client(t), s.URL+"/v1/"
	h, err := hear(t.Context(), anthropic.New(c, old, anthropic.Options{}), llm.Request{Messages: []llm.Message{said("Really?")}})
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "Yes." || h.done.Cut || h.done.Raw != nil {
		t.Errorf("heard %+v", h)
	}
	if body := string(last(t, s).Body); strings.Contains(body, `"thinking"`) || strings.Contains(body, `"system"`) || strings.Contains(body, `"tools"`) {
		t.Errorf("asked for what was not wanted: %s", body)
	}
}

// TestEnvironment shows that the server's own keys and addresses never reach a user's provider.
func TestEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "the server's")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "Yes."}))
	c := s.Config(llmtest.Anthropic, old)
	c.Client, c.APIKey = client(t), ""
	if _, err := hear(t.Context(), anthropic.New(c, old, anthropic.Options{}), ask(said("Hi"))); err != nil {
		t.Fatal(err)
	}
	if key := last(t, s).Header.Get("X-Api-Key"); key != "" {
		t.Errorf("the key %q was sent", key)
	}
}

func TestStopListening(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "a long answer that never ends", Break: llmtest.Hang}))
	for part, err := range dial(t, s, old, anthropic.Options{}).Stream(t.Context(), ask(said("Hi"))) {
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
	for part, err := range dial(t, s, old, anthropic.Options{}).Stream(ctx, ask(said("Hi"))) {
		if ended = err; err == nil && part.Text != "" {
			cancel()
		}
	}
	if !errors.Is(ended, context.Canceled) {
		t.Errorf("it ended with %v", ended)
	}
	<-last(t, s).Gone
}

// TestRedacted is about what the server of the tests does not write by itself:
// hidden thinking, a call between two texts, and blocks without an end.
func TestRedacted(t *testing.T) {
	stream := `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"c2VjcmV0"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"First. "}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"Hm.","signature":"` + signature("Hm.") + `"}}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"text","text":"Second."}}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_1","name":"run","input":{"command":"ls"}}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}

`
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: stream}, llmtest.Reply{Text: "Done."}))
	m := dial(t, s, old, anthropic.Options{Thinks: true})
	h, err := hear(t.Context(), m, ask(said("Hi")))
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "First. Second." || h.reasoning != "Hm." || len(h.calls) != 1 || string(h.calls[0].Args) != `{"command":"ls"}` {
		t.Errorf("heard %+v", h)
	}
	if u := h.done.Usage; u.Input != 10 || u.Output != 7 {
		t.Errorf("usage %+v", u)
	}
	if _, err := hear(t.Context(), m, ask(said("Hi"), h.message(), llm.Message{Role: llm.ToolResult, Call: "toolu_1", Text: "files"})); err != nil {
		t.Fatal(err)
	}
	want := []string{"redacted_thinking", "text", "thinking", "text", "tool_use"}
	if got := kinds(t, last(t, s), 1); !slices.Equal(got, want) {
		t.Errorf("the answer came back as %q, wanted %q", got, want)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
