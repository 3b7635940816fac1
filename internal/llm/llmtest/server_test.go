package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/llm"
)

// hello is the smallest request of each OpenAI wire.
const (
	helloChat      = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]}`
	helloResponses = `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":[{"role":"user","content":"hello"}]}`
)

// client makes a client that leaves nothing behind.
func client(t testing.TB) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// post sends a request and reads the whole answer.
func post(t testing.TB, c *http.Client, url, body string) (int, http.Header, string, error) {
	t.Helper()
	res, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(b), err
}

// frames splits a stream into the data of its events.
func frames(t *testing.T, body string) []string {
	t.Helper()
	var out []string
	for _, block := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		_, data, ok := strings.Cut(block, "data: ")
		if !ok {
			t.Fatalf("not an event: %q", block)
		}
		out = append(out, data)
	}
	return out
}

func TestChatStream(t *testing.T) {
	s := New(t, Script(Reply{
		Text: "Hällo, world", Reasoning: "let me think",
		Calls: []llm.Call{{ID: "a", Name: "f", Args: json.RawMessage(`{"x":"12345678"}`)}, {ID: "b", Name: "g", Args: json.RawMessage(`{}`)}},
		Usage: llm.Usage{Input: 10, Output: 5, CacheRead: 4},
	}))
	_, header, body, err := post(t, client(t), s.URL+"/v1/chat/completions", helloChat)
	if err != nil || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("got %v, %v", header, err)
	}
	data := frames(t, body)
	if data[len(data)-1] != "[DONE]" {
		t.Errorf("the last frame is %q", data[len(data)-1])
	}
	var text, reasoning, finish string
	var calls [2]string
	var usage chatUsage
	for _, d := range data[:len(data)-1] {
		var c chatAnswer
		if err := json.Unmarshal([]byte(d), &c); err != nil {
			t.Fatal(err)
		}
		if c.Usage != nil {
			usage = *c.Usage
			continue
		}
		delta := c.Choices[0].Delta
		if delta.Content != nil {
			text += *delta.Content
		}
		reasoning += delta.Reasoning
		for _, call := range delta.ToolCalls {
			calls[*call.Index] += call.ID + call.Function.Name + call.Function.Arguments
		}
		if c.Choices[0].FinishReason != nil {
			finish = *c.Choices[0].FinishReason
		}
	}
	if text != "Hällo, world" || reasoning != "let me think" || calls != [2]string{`af{"x":"12345678"}`, "bg{}"} || finish != "tool_calls" {
		t.Errorf("got text %q, reasoning %q, calls %q, finish %q", text, reasoning, calls, finish)
	}
	if usage.Prompt != 10 || usage.Completion != 5 || usage.PromptDetails.Cached != 4 {
		t.Errorf("got usage %+v", usage)
	}
}

func TestResponsesStream(t *testing.T) {
	s := New(t, Script(Reply{
		Text: "hello world", Reasoning: "let me think", Cut: true,
		Calls: []llm.Call{{ID: "a", Name: "f", Args: json.RawMessage(`{"x":"12345678"}`)}},
	}))
	_, _, body, err := post(t, client(t), s.URL+"/v1/responses", helloResponses)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	joined := map[string]string{}
	var last event
	for i, d := range frames(t, body) {
		var e event
		if err := json.Unmarshal([]byte(d), &e); err != nil {
			t.Fatal(err)
		}
		if e.Sequence != i || !strings.Contains(body, "event: "+e.Type+"\n") {
			t.Errorf("event %d is %+v", i, e)
		}
		joined[e.Type] += e.Delta
		if !slices.Contains(kinds, e.Type) {
			kinds = append(kinds, e.Type)
		}
		last = e
	}
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added",
		"response.reasoning_summary_part.added", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.reasoning_summary_part.done",
		"response.output_item.done",
		"response.content_part.added", "response.output_text.delta", "response.output_text.done", "response.content_part.done",
		"response.function_call_arguments.delta", "response.function_call_arguments.done", "response.incomplete",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("got events %q, want %q", kinds, want)
	}
	if joined["response.output_text.delta"] != "hello world" || joined["response.reasoning_summary_text.delta"] != "let me think" ||
		joined["response.function_call_arguments.delta"] != `{"x":"12345678"}` {
		t.Errorf("got deltas %q", joined)
	}
	if len(last.Response.Output) != 3 || last.Response.Usage == nil || !strings.HasPrefix(last.Response.Output[0].Encrypted, encrypted) {
		t.Errorf("got the end %+v", last.Response)
	}
}

func TestWholeAnswers(t *testing.T) {
	s := New(t, Script(Reply{Text: "hello", Calls: []llm.Call{{ID: "a", Name: "f", Args: json.RawMessage(`{}`)}}}))
	for path, body := range map[string]string{
		"/v1/chat/completions":                                 `{"model":"m","messages":[{"role":"user","content":"hello"}]}`,
		"/openai/deployments/m/chat/completions?api-version=1": `{"model":"m","messages":[{"role":"user","content":"hello"}]}`,
		"/v1/responses":                                        `{"model":"m","input":[{"role":"user","content":"hello"}]}`,
	} {
		_, header, got, err := post(t, client(t), s.URL+path, body)
		if err != nil || header.Get("Content-Type") != "application/json" || !json.Valid([]byte(got)) || !strings.Contains(got, `"hello"`) || !strings.Contains(got, `"f"`) {
			t.Errorf("%s: got %v, %s, %v", path, header, got, err)
		}
	}
	if status, _, got, _ := post(t, client(t), s.URL+"/v1/other", "{}"); status != http.StatusNotFound {
		t.Errorf("got %d, %s for a path that is no wire's", status, got)
	}
	res, err := client(t).Get(s.URL + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); !strings.Contains(string(b), `"data":[{"id"`) {
		t.Errorf("got models %s", b)
	}
}

func TestErrors(t *testing.T) {
	s := New(t, Script(
		Reply{Status: 429, Message: "slow down", RetryAfter: "7"},
		Reply{Status: 400, Code: "context_length_exceeded", Message: "too long"},
		Reply{Status: 502, Body: "<html>bad gateway</html>"},
	))
	c := client(t)
	status, header, body, _ := post(t, c, s.URL+"/v1/responses", helloResponses)
	if status != 429 || header.Get("Retry-After") != "7" || !strings.Contains(body, `"code":"rate_limit_exceeded"`) || !strings.Contains(body, `"slow down"`) {
		t.Errorf("got %d, %v, %s", status, header, body)
	}
	if status, _, body, _ = post(t, c, s.URL+"/v1/chat/completions", helloChat); status != 400 || !strings.Contains(body, `"code":"context_length_exceeded"`) {
		t.Errorf("got %d, %s", status, body)
	}
	if status, header, body, _ = post(t, c, s.URL+"/v1/chat/completions", helloChat); status != 502 || body != "<html>bad gateway</html>" || header.Get("Content-Type") != "text/html" {
		t.Errorf("got %d, %v, %s", status, header, body)
	}
	if got := s.Complaints(); len(got) != 0 {
		t.Errorf("got complaints %q about good requests", got)
	}
}

func TestBreaks(t *testing.T) {
	for path, body := range map[string]string{"/v1/chat/completions": helloChat, "/v1/responses": helloResponses} {
		for _, b := range []Break{Drop, EndEarly, Malformed, ErrorLate} {
			t.Run(path+" "+string(b), func(t *testing.T) {
				s := New(t, Script(Reply{Text: "a text of some length", Break: b, Code: "server_error", Message: "it broke"}))
				_, _, got, err := post(t, client(t), s.URL+path, body)
				if !strings.Contains(got, "data: ") {
					t.Errorf("nothing came before the break: %q", got)
				}
				if (b == Drop) != errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("got error %v", err)
				}
				if strings.Contains(got, "[DONE]") || strings.Contains(got, "response.completed") {
					t.Error("the stream came to its end")
				}
				if (b == Malformed) != strings.Contains(got, "is not JSON") || (b == ErrorLate) != strings.Contains(got, "it broke") {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}

func TestHangEndsWithTheClient(t *testing.T) {
	s := New(t, Script(Reply{Text: "a text of some length", Break: Hang}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(helloChat))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	gone := s.Asked()[0].Gone
	select {
	case <-gone:
		t.Fatal("the client is said to be gone while it reads")
	default:
	}
	cancel()
	<-gone
}

func TestCloseEndsWhatHangs(t *testing.T) {
	s := Start(Script(Reply{Text: "a text of some length", Break: Hang}))
	res, err := client(t).Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(helloChat))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	s.Close()
	s.Close()
	io.Copy(io.Discard, res.Body) // ends
}

func TestGoodAnswerLeavesGoneOpen(t *testing.T) {
	s := New(t, Script(Reply{Text: "hello"}))
	if _, _, _, err := post(t, client(t), s.URL+"/v1/chat/completions", helloChat); err != nil {
		t.Fatal(err)
	}
	s.Close()
	select {
	case <-s.Asked()[0].Gone:
		t.Error("a client that got its answer is said to have gone away")
	default:
	}
}

func TestKeep(t *testing.T) {
	s := New(t, Script(Reply{Text: "hello"}))
	s.Keep(3)
	c := client(t)
	for i := range 10 {
		body := strings.Replace(helloChat, "hello", strings.Repeat("x", i+1), 1)
		if _, _, _, err := post(t, c, s.URL+"/v1/chat/completions", body); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Asked(); len(got) != 3 || got[2].Messages[0].Text != "xxxxxxxxxx" || got[0].Messages[0].Text != "xxxxxxxx" {
		t.Errorf("got %d requests: %+v", len(got), got)
	}
}

func TestRefusesWhatIsNotWellFormed(t *testing.T) {
	s := New(t, Script(Reply{Text: "hello"}))
	c := client(t)
	bad := map[string][]string{
		"/v1/chat/completions": {
			`nonsense`,
			`{"messages":[]}`,
			`{"messages":[{"role":"robot","content":"x"}]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`,
			`{"messages":[{"role":"user","content":"x"},{"role":"tool","content":"y","tool_call_id":"1"}]}`,
			`{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"["}}]},{"role":"tool","content":"y","tool_call_id":"1"}]}`,
			`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`,
		},
		"/v1/responses": {
			`nonsense`,
			`{"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}]}`,
			`{"input":[{"role":"user","content":"x"},{"type":"reasoning","id":"r"}]}`,
			`{"store":false,"input":[{"role":"user","content":"x"},{"type":"reasoning","id":"r"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}]}`,
			`{"input":[{"role":"user","content":"x"},{"type":"reasoning","id":"r"},{"role":"user","content":"z"}]}`,
			`{"input":[{"type":"riddle"}]}`,
		},
	}
	n := 0
	for path, bodies := range bad {
		for _, body := range bodies {
			n++
			status, _, got, err := post(t, c, s.URL+path, body)
			if err != nil || status != http.StatusBadRequest || !strings.Contains(got, `"type":"invalid_request_error"`) {
				t.Errorf("%s %s: got %d, %s, %v", path, body, status, got, err)
			}
			if got := s.Complaints(); len(got) != n {
				t.Fatalf("%s %s: %d complaints, want %d", path, body, len(got), n)
			}
		}
	}
}

func TestWellFormed(t *testing.T) {
	user := llm.Message{Role: llm.User, Text: "x"}
	calls := func(ids ...string) llm.Message {
		m := llm.Message{Role: llm.Assistant}
		for _, id := range ids {
			m.Calls = append(m.Calls, llm.Call{ID: id, Name: "f"})
		}
		return m
	}
	result := func(id string) llm.Message { return llm.Message{Role: llm.ToolResult, Call: id} }
	for _, c := range []struct {
		name string
		ok   bool
		in   []llm.Message
	}{
		{"a conversation", true, []llm.Message{user, calls("1", "2"), result("2"), result("1"), user, calls("1"), result("1")}},
		{"nothing", false, nil},
		{"an assistant begins", false, []llm.Message{calls("1"), result("1")}},
		{"a result begins", false, []llm.Message{result("1")}},
		{"no result", false, []llm.Message{user, calls("1")}},
		{"one result of two", false, []llm.Message{user, calls("1", "2"), result("1"), user}},
		{"a result too late", false, []llm.Message{user, calls("1"), user, result("1")}},
		{"two results", false, []llm.Message{user, calls("1"), result("1"), result("1")}},
		{"the same id twice", false, []llm.Message{user, calls("1", "1"), result("1"), result("1")}},
		{"a call of a person", false, []llm.Message{{Role: llm.User, Calls: calls("1").Calls}, result("1")}},
		{"a call without an id", false, []llm.Message{user, calls(""), result("")}},
		{"silence", false, []llm.Message{user, {Role: llm.Assistant}}},
	} {
		if err := WellFormed(Asked{Messages: c.in}); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(helloChat))
	f.Add([]byte(helloResponses))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":null}]}],"input":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, w := range wires {
			r, err := http.NewRequest(http.MethodPost, "http://x/v1beta/models/m:generateContent", bytes.NewReader(nil))
			if err != nil {
				t.Fatal(err)
			}
			if a, err := w.read(r, body); err == nil {
				_ = WellFormed(a)
				w.stream(a, Reply{Text: string(body), Fragment: 3})
			}
		}
	})
}

func BenchmarkAnswers(b *testing.B) {
	s := Start(Script(Reply{Text: "A short answer of two or three dozen words is what benchmarks of the product use, for they measure the product and not the model."}))
	defer s.Close()
	s.Keep(10)
	c := client(b)
	for b.Loop() {
		if _, _, _, err := post(b, c, s.URL+"/v1/chat/completions", helloChat); err != nil {
			b.Fatal(err)
		}
	}
}
