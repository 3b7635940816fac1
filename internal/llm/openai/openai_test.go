package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dot = "data:image/png;base64,iVBORw0KGgo="

// client makes a client that leaves nothing behind.
func client(t testing.TB) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// wires are the two ways to reach a model.
var wires = []llmtest.Wire{llmtest.Chat, llmtest.Responses}

// reach makes a model of the server's.
func reach(t testing.TB, s *llmtest.Server, w llmtest.Wire, o Options) llm.Model {
	c := s.Config(w, "m")
	c.Client = client(t)
	if w == llmtest.Responses {
		return Responses(c, "m", o)
	}
	return Chat(c, "m", o)
}

// heard is an answer put together.
type heard struct {
	text, reasoning string
	calls           []llm.Call
	done            *llm.Done
	err             error
}

func listen(ctx context.Context, m llm.Model, req llm.Request) (h heard) {
	for p, err := range m.Stream(ctx, req) {
		switch {
		case err != nil:
			h.err = err
		case p.Call != nil:
			h.calls = append(h.calls, *p.Call)
		case p.Done != nil:
			h.done = p.Done
		}
		h.text += p.Text
		h.reasoning += p.Reasoning
	}
	return h
}

func hello() llm.Request {
	return llm.Request{
		System: "Be brief.", MaxOutput: 100, Conversation: "c1",
		Messages: []llm.Message{{Role: llm.User, Text: "hello"}},
		Tools:    []llm.Tool{{Name: "f", Description: "does it"}, {Name: "g", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)}},
	}
}

func TestAnswer(t *testing.T) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(llmtest.Reply{
				Text: "Hällo, wörld", Reasoning: "I must think about it", Fragment: 3,
				Calls: []llm.Call{
					{ID: "a", Name: "f", Args: json.RawMessage(`{"x": "some longer text", "y": [1,2]}`)},
					{ID: "b", Name: "g", Args: json.RawMessage(`""`)},
					{ID: "c", Name: "g", Args: json.RawMessage(`"{\"x\": "`)},
				},
				Usage: llm.Usage{Input: 100, Output: 20, CacheRead: 60, CacheWrite: 7},
			}))
			h := listen(t.Context(), reach(t, s, w, Options{Window: 1000, Thinks: true}), hello())
			if h.err != nil || h.text != "Hällo, wörld" || h.reasoning != "I must think about it" {
				t.Fatalf("got %+v", h)
			}
			want := []llm.Call{
				{ID: "a", Name: "f", Args: json.RawMessage(`{"x": "some longer text", "y": [1,2]}`)},
				{ID: "b", Name: "g", Args: json.RawMessage(`{}`)},
				{ID: "c", Name: "g", Args: json.RawMessage(`"{\"x\": "`)},
			}
			if !reflect.DeepEqual(h.calls, want) {
				t.Errorf("got calls %s", h.calls)
			}
			if u := h.done.Usage; u != (llm.Usage{Input: 100, Output: 20, CacheRead: 60, CacheWrite: 7, Window: 1000}) || h.done.Cut {
				t.Errorf("got %+v", h.done)
			}
			a := s.Asked()[0]
			if a.System != "Be brief." || a.Model != "m" || !reflect.DeepEqual(a.Tools, []string{"f", "g"}) || a.Header.Get("Authorization") != "Bearer test-key" {
				t.Errorf("got request %+v", a)
			}
			limit := map[llmtest.Wire]string{llmtest.Chat: `"max_completion_tokens":100`, llmtest.Responses: `"max_output_tokens":100`}[w]
			for _, part := range []string{limit, `"prompt_cache_key":"c1"`} {
				if !strings.Contains(string(a.Body), part) {
					t.Errorf("the request has no %s: %s", part, a.Body)
				}
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, w := range wires {
		s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "and so", Cut: true}))
		if h := listen(t.Context(), reach(t, s, w, Options{}), hello()); h.err != nil || !h.done.Cut {
			t.Errorf("%s: got %+v", w, h)
		}
	}
}

func TestHistory(t *testing.T) {
	req := hello()
	req.Messages = []llm.Message{
		{Role: llm.User, Text: "look", Images: []string{dot}},
		{Role: llm.Assistant, Text: "I look", Calls: []llm.Call{
			{ID: "1", Name: "f", Args: json.RawMessage(`{"x":1}`)},
			{ID: "2", Name: "g", Args: json.RawMessage(`"not json"`)},
		}},
		{Role: llm.ToolResult, Call: "1", Name: "f", Text: "seen", Images: []string{dot}},
		{Role: llm.ToolResult, Call: "2", Name: "g", Text: "bad arguments", Failed: true},
		{Role: llm.Assistant},
		{Role: llm.User},
		{Role: llm.Assistant, Calls: []llm.Call{{ID: "3", Name: "f"}}},
		{Role: llm.ToolResult, Call: "3", Name: "f", Images: []string{dot}},
	}
	common := []llm.Message{
		{Role: llm.User, Text: "look", Images: []string{dot}},
		{Role: llm.Assistant, Text: "I look", Calls: []llm.Call{
			{ID: "1", Name: "f", Args: json.RawMessage(`{"x":1}`)},
			{ID: "2", Name: "g", Args: json.RawMessage(`{"not_a_json_object":"not json"}`)},
		}},
	}
	again := llm.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "3", Name: "f", Args: json.RawMessage(`{}`)}}}
	want := map[llmtest.Wire][]llm.Message{
		llmtest.Responses: append(common[:2:2],
			llm.Message{Role: llm.ToolResult, Call: "1", Text: "seen", Images: []string{dot}},
			llm.Message{Role: llm.ToolResult, Call: "2", Text: "bad arguments"},
			again,
			llm.Message{Role: llm.ToolResult, Call: "3", Images: []string{dot}},
		),
		llmtest.Chat: append(common[:2:2],
			llm.Message{Role: llm.ToolResult, Call: "1", Text: "seen"},
			llm.Message{Role: llm.ToolResult, Call: "2", Text: "bad arguments"},
			llm.Message{Role: llm.User, Text: "Images from the result of f (call 1):", Images: []string{dot}},
			again,
			llm.Message{Role: llm.ToolResult, Call: "3"},
			llm.Message{Role: llm.User, Text: "Images from the result of f (call 3):", Images: []string{dot}},
		),
	}
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "ok"}))
			if h := listen(t.Context(), reach(t, s, w, Options{}), req); h.err != nil {
				t.Fatalf("got %v; complaints %q", h.err, s.Complaints())
			}
			if got := s.Asked()[0].Messages; !reflect.DeepEqual(got, want[w]) {
				t.Errorf("got  %+v\nwant %+v", got, want[w])
			}
		})
	}
}

func TestBreaks(t *testing.T) {
	class := map[llmtest.Break]llm.Class{
		llmtest.Drop: llm.ClassNetwork, llmtest.EndEarly: llm.ClassNetwork,
		llmtest.Malformed: llm.ClassInternal, llmtest.ErrorLate: llm.ClassOverload,
	}
	for _, w := range wires {
		for b, want := range class {
			t.Run(string(w)+" "+string(b), func(t *testing.T) {
				s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "a text of some length", Break: b, Code: "overloaded_error", Message: "it is too much"}))
				h := listen(t.Context(), reach(t, s, w, Options{}), hello())
				var e *llm.Error
				if !errors.As(h.err, &e) || e.Class != want || !e.Began || e.Unsent || h.text == "" || h.done != nil {
					t.Fatalf("got %+v", h)
				}
				if b == llmtest.ErrorLate && !strings.Contains(e.Message, "it is too much") {
					t.Errorf("got message %q", e.Message)
				}
			})
		}
	}
}

func TestCancelClosesTheConnection(t *testing.T) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "a text of some length", Break: llmtest.Hang}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last error
			for p, err := range reach(t, s, w, Options{}).Stream(ctx, hello()) {
				if p.Text != "" {
					cancel()
				}
				last = err
			}
			if !errors.Is(last, context.Canceled) {
				t.Errorf("got %v", last)
			}
			<-s.Asked()[0].Gone
		})
	}
}

func TestStoppingClosesTheConnection(t *testing.T) {
	for _, w := range wires {
		s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "a text of some length", Break: llmtest.Hang}))
		for range reach(t, s, w, Options{}).Stream(t.Context(), hello()) {
			break
		}
		<-s.Asked()[0].Gone
	}
}

func TestCancelBeforeTheAnswer(t *testing.T) {
	for _, w := range wires {
		ctx, cancel := context.WithCancel(t.Context())
		s := llmtest.New(t, func(a llmtest.Asked) llmtest.Reply {
			cancel()
			<-a.Gone
			return llmtest.Reply{}
		})
		if h := listen(ctx, reach(t, s, w, Options{}), hello()); !errors.Is(h.err, context.Canceled) {
			t.Errorf("%s: got %+v", w, h)
		}
	}
}

func TestReasoningComesBack(t *testing.T) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(
				llmtest.Reply{Text: "first", Reasoning: "deep thought", Calls: []llm.Call{{ID: "1", Name: "f", Args: json.RawMessage(`{}`)}}},
				llmtest.Reply{Text: "second"},
			))
			m := reach(t, s, w, Options{Thinks: true})
			h := listen(t.Context(), m, hello())
			if h.err != nil || !strings.HasPrefix(string(h.done.Raw), `{"from":"openai-`) {
				t.Fatalf("got %+v", h)
			}
			req := hello()
			req.Messages = append(req.Messages,
				llm.Message{Role: llm.Assistant, Text: h.text, Calls: h.calls, Raw: h.done.Raw},
				llm.Message{Role: llm.ToolResult, Call: "1", Name: "f", Text: "done"})
			if h := listen(t.Context(), m, req); h.err != nil {
				t.Fatalf("got %v; complaints %q", h.err, s.Complaints())
			}
			if body := string(s.Asked()[1].Body); strings.Count(body, "deep thought") != 1 {
				t.Errorf("the reasoning is not in the request: %s", body)
			}
			c := s.Config(w, "other")
			c.Client = client(t)
			other := map[llmtest.Wire]func(llm.Config, string, Options) llm.Model{llmtest.Chat: Chat, llmtest.Responses: Responses}[w](c, "other", Options{Thinks: true})
			for _, raw := range []string{string(h.done.Raw), `{"from":"somebody else"}`, `not JSON`, ""} {
				req.Messages[1].Raw = json.RawMessage(raw)
				if h := listen(t.Context(), other, req); h.err != nil {
					t.Fatal(h.err)
				}
				asked := s.Asked()
				if body := string(asked[len(asked)-1].Body); strings.Contains(body, "deep thought") {
					t.Errorf("another model was sent it: %s", body)
				}
			}
		})
	}
}

func TestResponsesAskForSealedReasoningOnlyOfThinkers(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "ok"}))
	for _, thinks := range []bool{true, false} {
		listen(t.Context(), reach(t, s, llmtest.Responses, Options{Thinks: thinks}), hello())
		asked := s.Asked()
		body := string(asked[len(asked)-1].Body)
		if strings.Contains(body, "reasoning") != thinks || !strings.Contains(body, `"store":false`) {
			t.Errorf("thinks %v: got %s", thinks, body)
		}
	}
}

func TestAzure(t *testing.T) {
	paths := make(chan string, 1)
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "ok"}))
	for _, c := range []struct {
		base, version, want string
		make                func(llm.Config, string, Options) llm.Model
	}{
		{"", "2025-01-01", "/openai/deployments/m/chat/completions?api-version=2025-01-01", Chat},
		{"/openai/", "", "/openai/deployments/m/chat/completions?api-version=" + azureVersion, Chat},
		{"/openai/deployments/mine?api-version=5", "2025-01-01", "/openai/deployments/mine/chat/completions?api-version=5", Chat},
		{"/openai/v1", "", "/openai/v1/chat/completions", Chat},
		{"", "", "/openai/v1/responses", Responses},
	} {
		config := llm.Config{APIKey: "azure-key", BaseURL: s.URL + c.base, Client: client(t)}
		next := config.Client.Transport
		config.Client.Transport = transport(func(r *http.Request) (*http.Response, error) {
			paths <- r.URL.RequestURI()
			return next.RoundTrip(r)
		})
		if h := listen(t.Context(), c.make(config, "m", Options{Azure: true, APIVersion: c.version}), hello()); h.err != nil {
			t.Fatal(h.err)
		}
		if got := <-paths; got != c.want {
			t.Errorf("asked at %s, want %s", got, c.want)
		}
		asked := s.Asked()
		last := asked[len(asked)-1]
		if last.Header.Get("Api-Key") != "azure-key" || last.Header.Get("Authorization") != "" || strings.Contains(string(last.Body), "prompt_cache_key") {
			t.Errorf("got headers %v, body %s", last.Header, last.Body)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCompatible(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "ok"}))
	c := s.Config(llmtest.Chat, "m")
	c.Client, c.APIKey = client(t), ""
	m := Chat(c, "m", Options{Compatible: true, Headers: map[string]string{"X-Title": "Deckhand"}})
	if h := listen(t.Context(), m, hello()); h.err != nil {
		t.Fatal(h.err)
	}
	a := s.Asked()[0]
	if body := string(a.Body); !strings.Contains(body, `"max_tokens":100`) || strings.Contains(body, "max_completion_tokens") || strings.Contains(body, "prompt_cache_key") {
		t.Errorf("got %s", body)
	}
	if a.Header.Get("X-Title") != "Deckhand" || a.Header.Get("Authorization") != "" {
		t.Errorf("got headers %v", a.Header)
	}
}

func TestEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "the-operator's")
	t.Setenv("OPENAI_ORG_ID", "the-operator's")
	t.Setenv("OPENAI_BASE_URL", "http://192.0.2.1/")
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "ok"}))
	for _, w := range wires {
		c := s.Config(w, "m")
		c.Client, c.APIKey = client(t), ""
		m := Chat(c, "m", Options{})
		if w == llmtest.Responses {
			m = Responses(c, "m", Options{})
		}
		if h := listen(t.Context(), m, hello()); h.err != nil {
			t.Fatal(h.err)
		}
	}
	for _, a := range s.Asked() {
		for name, values := range a.Header {
			if strings.Contains(strings.Join(values, ""), "operator") {
				t.Errorf("header %s is %q", name, values)
			}
		}
	}
}

func TestNoConnection(t *testing.T) {
	s := llmtest.Start(llmtest.Script(llmtest.Reply{}))
	s.Close()
	for _, w := range wires {
		h := listen(t.Context(), reach(t, s, w, Options{}), hello())
		var e *llm.Error
		if !errors.As(h.err, &e) || e.Class != llm.ClassNetwork || e.Began || !e.Unsent || !strings.Contains(e.Message, "refused") {
			t.Errorf("got %+v", h.err)
		}
	}
}

func TestRefusedAddressIsReadable(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{}))
	for _, w := range wires {
		c := s.Config(w, "m")
		c.Client = outbound.NewClient(outbound.Policy{}, 0)
		m := Chat(c, "m", Options{})
		if w == llmtest.Responses {
			m = Responses(c, "m", Options{})
		}
		h := listen(t.Context(), m, hello())
		var e *llm.Error
		if !errors.As(h.err, &e) || e.Class != llm.ClassNetwork || !strings.Contains(e.Message, "--allow-private") {
			t.Errorf("got %v", h.err)
		}
	}
	if n := len(s.Asked()); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

func TestBadAddress(t *testing.T) {
	for _, base := range []string{"::", "ftp://x/", "nonsense", "http://"} {
		h := listen(t.Context(), Chat(llm.Config{BaseURL: base, Client: client(t)}, "m", Options{}), hello())
		var e *llm.Error
		if !errors.As(h.err, &e) || e.Class != llm.ClassRequest {
			t.Errorf("%q: got %v", base, h.err)
		}
	}
	h := listen(t.Context(), Responses(llm.Config{Client: client(t)}, "m", Options{Azure: true}), hello())
	if h.err == nil {
		t.Error("an Azure model without an address was called")
	}
}
