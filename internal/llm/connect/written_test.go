package connect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
)

// writers are models whose requests differ: in the API, in thinking, and in what they lack.
var writers = []string{
	"openai/gpt-4o", "openai/responses/gpt-4o", "openai/gpt-5", "anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-6",
	"minimax/MiniMax-M3", "gemini/gemini-2.5-pro", "gemini/gemini-3-pro-preview", "deepseek/deepseek-chat", "ollama/llama3",
}

// waiting is a request that a server did not read yet.
type waiting struct {
	header http.Header
	body   io.Reader
}

// post gives a request to a model, whose server takes it without reading it.
func post(t *testing.T, model string, req llm.Request) waiting {
	t.Helper()
	var got waiting
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		got = waiting{r.Header, r.Body}
		return nil, errors.New("nothing is sent")
	})}
	m, err := connect.Open(llm.Config{Model: model, APIKey: "k", Client: client}, catalogue.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	for range m.Stream(t.Context(), req) {
	}
	return got
}

func (w waiting) read(t *testing.T) string {
	t.Helper()
	b, err := io.ReadAll(w.body)
	if err != nil || !json.Valid(b) {
		t.Errorf("%v in %s", err, b)
	}
	return string(b)
}

// writing makes up a conversation.
type writing struct {
	*rand.Rand
	calls int
}

func (w *writing) one(texts ...string) string { return texts[w.IntN(len(texts))] }

func (w *writing) text() string {
	return w.one("", " ", "Go on.", "Look at <this> & \"that\" ä\u2028\x01\xff.\n\tIt is long.", "[", "}")
}

func (w *writing) images() (urls []string) {
	for w.IntN(6) == 0 {
		urls = append(urls, w.one("data:image/png;base64,iVBORw0KGgo=", "https://example.com/a.png", "data:image/png;base64,%"))
	}
	return urls
}

// add makes a history longer by a message of a person, or by an answer with results.
func (w *writing) add(messages []llm.Message) []llm.Message {
	if w.IntN(3) == 0 {
		return append(messages, llm.Message{Role: llm.User, Text: w.text(), Images: w.images()})
	}
	answer := llm.Message{Role: llm.Assistant, Text: w.text()}
	for w.IntN(3) > 0 {
		w.calls++
		args := w.one(`{"command":"ls <&>"}`, `{ "n": 12345678901234567890, "f": 1e2 }`, `"{cut"`, `{}`, "", "null")
		answer.Calls = append(answer.Calls, llm.Call{ID: fmt.Sprint("call", w.calls), Name: w.one("bash", "browse", "bash<|x|>"), Args: json.RawMessage(args)})
	}
	if raw := w.raw(answer); raw != "" {
		answer.Raw = json.RawMessage(raw)
	}
	messages = append(messages, answer)
	for _, c := range answer.Calls {
		messages = append(messages, llm.Message{
			Role: llm.ToolResult, Call: c.ID, Name: w.one("", c.Name), Text: w.text(), Images: w.images(), Failed: w.IntN(4) == 0,
		})
	}
	return messages
}

// raw is what a provider wants to have back with an answer.
func (w *writing) raw(m llm.Message) string {
	n, calls := len(m.Text), strings.Repeat(`,{"call":true}`, len(m.Calls))
	return w.one("",
		fmt.Sprintf(`{"from":"anthropic","model":"claude-sonnet-4-5","blocks":[{"thinking":"Hm <&>","signature":"s=="},{"text":%d}%s]}`, n, calls),
		fmt.Sprintf(`{"from":"anthropic","model":"claude-opus-4-6","blocks":[{"redacted":"c2Vj"},{"text":%d}%s]}`, n, calls),
		fmt.Sprintf(`{"from":"gemini","model":"gemini-2.5-pro","pieces":[{"text":%d,"signature":"c2ln"}%s]}`, n, calls),
		`{"from":"openai-chat","model":"gpt-4o","fields":{"reasoning":"hm"}}`,
		`{"from":"openai-responses","model":"gpt-5","thoughts":[{"item":{"type":"reasoning","id":"r"}}]}`,
	)
}

// request is the next request of a conversation, which may have changed in every way.
func (w *writing) request(req llm.Request) llm.Request {
	tools := []llm.Tool{
		{Name: "bash", Description: "Runs a <command>.", Schema: json.RawMessage(`{ "type": "object", "properties": {"command": {"type": "string"}} }`)},
		{Name: "browse", Description: "Opens a page.", Schema: json.RawMessage(`{"$schema":"x","properties":{"url":{"maxLength":1e3}}}`)},
		{Name: "wait"},
	}
	if w.IntN(10) == 0 {
		req.System = w.one("", "\n", "Work.", "Rest & <think>.")
	}
	if w.IntN(10) == 0 {
		req.Tools = tools[:w.IntN(len(tools)+1)]
	}
	if w.IntN(10) == 0 {
		req.MaxOutput = w.Int64N(8000)
	}
	if n := len(req.Messages); n > 4 && w.IntN(20) == 0 { // condensed
		to := w.IntN(n)
		req.Messages = slices.Concat([]llm.Message{{Role: llm.User, Text: "It was long."}}, req.Messages[to:])
		req.Written = &llm.Written{}
	}
	if w.IntN(5) > 0 {
		req.Messages = w.add(req.Messages)
	}
	return req
}

// A request that continues another is written as if it were the first, though the server reads it
// only when later ones were written.
func TestWritten(t *testing.T) {
	t.Parallel()
	const conversations, steps = 60, 40
	for seed := range uint64(conversations) {
		w := &writing{Rand: rand.New(rand.NewPCG(seed, 0))}
		req := llm.Request{System: "Work.", MaxOutput: 4000, Written: &llm.Written{}, Messages: []llm.Message{{Role: llm.User, Text: "Go"}}}
		model := w.one(writers...)
		var check []func()
		for step := range steps {
			req = w.request(req)
			if w.IntN(20) == 0 {
				model = w.one(writers...)
			}
			got, whole := post(t, model, req), req
			whole.Written = nil
			want := post(t, model, whole)
			if !reflect.DeepEqual(got.header, want.header) {
				t.Errorf("%s in step %d of conversation %d: headers %v, want %v", model, step, seed, got.header, want.header)
			}
			what := fmt.Sprintf("%s in step %d of conversation %d", model, step, seed)
			check = append(check, func() {
				if got, want := got.read(t), want.read(t); got != want {
					t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
				}
			})
		}
		for _, c := range check {
			c()
		}
	}
}

// What was written before is not written again: a change of it does not show.
func TestNotWrittenAgain(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"openai/gpt-4o", "openai/gpt-5", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"} {
		req := longTalk(9)
		req.Written = &llm.Written{}
		first := post(t, model, req).read(t)
		req.Messages[0].Text, req.Messages[3].Text = "Look away.", "No."
		if got := post(t, model, req).read(t); got != first {
			t.Errorf("%s was written again: %s", model, got)
		}
	}
}
