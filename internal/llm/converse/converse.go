// Package converse is the adapter for the Converse API of Amazon Bedrock, which serves the models of all vendors there.
package converse

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"deckhand/internal/llm"
)

// Options are the properties of the model.
type Options struct {
	// Endpoint is the URL of the model's converse-stream operation. The client authorizes the requests and reads
	// event streams as server-sent events.
	Endpoint string
	// Window is the context window in tokens, 0 if unknown.
	Window int64
}

type model struct {
	name    string
	options Options
	client  *http.Client
}

// New returns a model. name is the provider's name for it.
func New(client *http.Client, name string, o Options) llm.Model { return &model{name, o, client} }

// Stream implements llm.Model.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		calling, cancel := context.WithCancel(ctx)
		defer cancel()
		calling, sent := llm.Sending(calling)
		a := answer{window: m.options.Window, calling: req.Calling, calls: map[int]*llm.Call{}}
		response, err := llm.Post(calling, m.client, m.options.Endpoint, http.Header{"Accept": {"application/vnd.amazon.eventstream"}}, m.request(req))
		if err == nil {
			defer response.Body.Close()
			for part, broken := range a.read(response) {
				if err = broken; err != nil {
					break
				}
				if !yield(part, nil) {
					return
				}
			}
		}
		if err != nil && ctx.Err() != nil {
			yield(llm.Part{}, ctx.Err())
			return
		}
		if e := classify(err, &a); e != nil {
			e.Began, e.Unsent = a.began, !sent()
			e.Message = llm.CleanMessage(e.Message, "")
			yield(llm.Part{}, e)
			return
		}
		yield(llm.Part{Done: a.done()}, nil)
	}
}

// maxRefusal is the maximum size of an error body in bytes.
const maxRefusal = 1 << 20

// refusal is an error that Bedrock reports.
type refusal struct {
	class llm.Class
	text  string
	after http.Header
}

func (r *refusal) Error() string { return r.text }

// answer is the response so far.
type answer struct {
	window int64
	began  bool
	// calling is the request's.
	calling func(tool string)
	stop    string
	usage   usage
	calls   map[int]*llm.Call
}

type usage struct {
	Input      int64 `json:"inputTokens"`
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
}

// event is an event of the stream. Which fields it has depends on its type.
type event struct {
	Index int `json:"contentBlockIndex"`
	Start struct {
		Call *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta struct {
		Text string `json:"text"`
		Call *struct {
			Input string `json:"input"`
		} `json:"toolUse"`
		Reasoning struct {
			Text string `json:"text"`
		} `json:"reasoningContent"`
	} `json:"delta"`
	Stop  string `json:"stopReason"`
	Usage usage  `json:"usage"`
}

// read reads the parts of a response.
func (a *answer) read(response *http.Response) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		if response.StatusCode < 200 || response.StatusCode > 299 {
			said, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // a truncated body is good enough
			yield(llm.Part{}, refused(response, said))
			return
		}
		for frame, err := range llm.Events(response.Body) {
			if err == nil && frame.Type == "error" {
				err = late(frame.Data)
			}
			var e event
			if err == nil {
				err = json.Unmarshal(frame.Data, &e)
			}
			if err != nil {
				yield(llm.Part{}, err)
				return
			}
			a.began = true
			if part, ok := a.add(frame.Type, e); ok && !yield(part, nil) {
				return
			}
		}
	}
}

// add adds an event; ok is false if it has no part of the response.
func (a *answer) add(kind string, e event) (part llm.Part, ok bool) {
	switch kind {
	case "contentBlockStart":
		if c := e.Start.Call; c != nil {
			a.calls[e.Index] = &llm.Call{ID: c.ID, Name: c.Name}
			if a.calling != nil {
				a.calling(c.Name)
			}
		}
	case "contentBlockDelta":
		if c := a.calls[e.Index]; c != nil && e.Delta.Call != nil {
			c.Args = append(c.Args, e.Delta.Call.Input...)
		}
		part = llm.Part{Text: e.Delta.Text, Reasoning: e.Delta.Reasoning.Text}
		return part, part.Text != "" || part.Reasoning != ""
	case "contentBlockStop":
		if c := a.calls[e.Index]; c != nil {
			delete(a.calls, e.Index)
			c.Args = arguments(string(c.Args))
			return llm.Part{Call: c}, true
		}
	case "messageStop":
		a.stop = e.Stop
	case "metadata":
		a.usage = e.Usage
	}
	return part, false
}

// arguments returns the JSON object that the model wrote, or a string if it is not an object.
func arguments(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if text == "" {
		return json.RawMessage(`{}`)
	}
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text)
	return quoted
}

func (a *answer) done() *llm.Done {
	u := a.usage
	return &llm.Done{Cut: a.stop == "max_tokens" || a.stop == "model_context_window_exceeded",
		Usage: llm.Usage{Input: u.Input + u.CacheRead + u.CacheWrite, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Window: a.window}}
}

func classify(err error, a *answer) *llm.Error {
	var said *refusal
	var broken *json.SyntaxError
	switch {
	case errors.As(err, &said):
		return &llm.Error{Class: said.class, Message: said.text, RetryAfter: llm.RetryAfter(said.after)}
	case errors.As(err, &broken), errors.Is(err, bufio.ErrTooLong):
		return &llm.Error{Class: llm.ClassInternal, Message: "the provider sent an invalid response: " + err.Error()}
	case err != nil:
		return llm.Unreachable(err)
	case a.stop == "guardrail_intervened", a.stop == "content_filtered":
		return &llm.Error{Class: llm.ClassPolicy, Message: "the provider stopped the answer (" + a.stop + ")"}
	case a.stop == "malformed_model_output", a.stop == "malformed_tool_use":
		return &llm.Error{Class: llm.ClassInternal, Message: "the model did not finish its answer (" + a.stop + ")"}
	case a.stop == "":
		return &llm.Error{Class: llm.ClassNetwork, Message: "the reply ended early"}
	}
	return nil
}

// refused returns the error for a response with a status other than 200.
func refused(response *http.Response, body []byte) *refusal {
	var said struct{ Message string }
	_ = json.Unmarshal(body, &said)
	r := &refusal{class: llm.ClassRequest, text: said.Message, after: response.Header}
	if r.text == "" {
		r.text = strings.TrimSpace(fmt.Sprintf("the server responded with %d %s", response.StatusCode, http.StatusText(response.StatusCode)))
	}
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		r.class = llm.ClassAuth
	case http.StatusTooManyRequests:
		r.class = llm.ClassRate
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		r.class = llm.ClassOverload
	case http.StatusFailedDependency, http.StatusInternalServerError:
		r.class = llm.ClassInternal
	case http.StatusRequestEntityTooLarge:
		r.class = llm.ClassContext
	}
	if message := strings.ToLower(r.text); r.class == llm.ClassRequest && llm.ContainsAny(message, "too long", "context length", "context window", "too many input tokens") {
		r.class = llm.ClassContext
	}
	return r
}

// late returns the error for an error event in a stream.
func late(data []byte) *refusal {
	var said struct {
		Error struct{ Type, Message string }
	}
	_ = json.Unmarshal(data, &said)
	r := &refusal{class: llm.ClassInternal, text: said.Error.Message}
	switch said.Error.Type {
	case "rate_limit_error":
		r.class = llm.ClassRate
	case "overloaded_error", "timeout_error":
		r.class = llm.ClassOverload
	case "invalid_request_error":
		r.class = llm.ClassRequest
	case "permission_error":
		r.class = llm.ClassAuth
	}
	return r
}
