package openai

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply llmtest.Reply
		want  llm.Class
		says  string
	}{
		{"wrong key", llmtest.Reply{Status: 401, Message: "Incorrect API key provided"}, llm.ClassAuth, "Incorrect API key"},
		{"not yours", llmtest.Reply{Status: 403, Message: "Country not supported"}, llm.ClassAuth, "Country"},
		{"a proxy's wrong key", llmtest.Reply{Status: 400, Message: "litellm.AuthenticationError: no"}, llm.ClassAuth, ""},
		{"quota", llmtest.Reply{Status: 429, Code: "insufficient_quota", Message: "You exceeded your current quota"}, llm.ClassCredit, "quota"},
		{"payment", llmtest.Reply{Status: 402, Message: "Insufficient credits"}, llm.ClassCredit, ""},
		{"budget", llmtest.Reply{Status: 400, Message: "ExceededBudget: User has exceeded their budget"}, llm.ClassCredit, ""},
		{"budget of a key", llmtest.Reply{Status: 429, Code: "budget_exceeded", Message: "Budget has been exceeded! Current cost: 1, Max budget: 1"}, llm.ClassCredit, ""},
		{"context", llmtest.Reply{Status: 400, Code: "context_length_exceeded", Message: "too long"}, llm.ClassContext, "too long"},
		{"context in words", llmtest.Reply{Status: 400, Message: "This model's maximum context length is 8192 tokens"}, llm.ClassContext, ""},
		{"context of a local server", llmtest.Reply{Status: 400, Body: `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`}, llm.ClassContext, ""},
		{"too large", llmtest.Reply{Status: 413, Message: "no"}, llm.ClassContext, ""},
		{"tokens per minute", llmtest.Reply{Status: 413, Code: "rate_limit_exceeded", Message: "Request too large on tokens per minute, reduce the length of the messages"}, llm.ClassRate, ""},
		{"policy", llmtest.Reply{Status: 400, Code: "content_policy_violation", Message: "no"}, llm.ClassPolicy, ""},
		{"filter", llmtest.Reply{Status: 400, Code: "content_filter", Message: "The response was filtered"}, llm.ClassPolicy, ""},
		{"flagged", llmtest.Reply{Status: 403, Message: "openai requires moderation on it. Your input was flagged"}, llm.ClassPolicy, ""},
		{"rate", llmtest.Reply{Status: 429, Message: "slow down"}, llm.ClassRate, "slow down"},
		{"unavailable", llmtest.Reply{Status: 503}, llm.ClassOverload, ""},
		{"bad gateway", llmtest.Reply{Status: 502, Body: "<html>"}, llm.ClassOverload, "web page (HTTP 502)"},
		{"gateway timeout", llmtest.Reply{Status: 504, Body: "upstream timed out"}, llm.ClassOverload, "HTTP 504 Gateway Timeout"},
		{"overloaded", llmtest.Reply{Status: 529}, llm.ClassOverload, ""},
		{"internal", llmtest.Reply{Status: 500, Message: "oops"}, llm.ClassInternal, "oops"},
		{"bad request", llmtest.Reply{Status: 400, Message: "no such field"}, llm.ClassRequest, "no such field"},
		{"no such model", llmtest.Reply{Status: 404, Body: `{"error":"model 'x' not found"}`}, llm.ClassRequest, "model 'x' not found"},
		{"no such path", llmtest.Reply{Status: 404, Body: `{"detail":"Not Found"}`}, llm.ClassRequest, "Not Found"},
		{"unprocessable", llmtest.Reply{Status: 422, Body: `{"detail":[{"loc":["body"],"msg":"field required"}]}`}, llm.ClassRequest, "field required"},
		{"the fields alone", llmtest.Reply{Status: 400, Body: `{"object":"error","message":"bad template","type":"BadRequestError","code":400}`}, llm.ClassRequest, "bad template"},
		{"in a list", llmtest.Reply{Status: 400, Body: `[{"error":{"code":400,"message":"listed"}}]`}, llm.ClassRequest, "listed"},
		{"a router's upstream", llmtest.Reply{Status: 502, Body: `{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"the upstream's words"}}}`}, llm.ClassOverload, "upstream's words"},
		{"an error with status 200", llmtest.Reply{Body: `{"error":{"message":"boom","code":"server_error"}}`}, llm.ClassInternal, "boom"},
		{"a page with status 200", llmtest.Reply{Body: `<html>welcome`}, llm.ClassRequest, "web page"},
		{"no stream", llmtest.Reply{Body: `{"choices":[]}`}, llm.ClassInternal, "did not stream"},
		{"nothing at all", llmtest.Reply{Status: 418, Body: "{}"}, llm.ClassRequest, "418"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(c.reply))
			for _, w := range wires {
				h := listen(t.Context(), reach(t, s, w, Options{}), hello())
				var e *llm.Error
				if !errors.As(h.err, &e) || e.Class != c.want || e.Began || !strings.Contains(e.Message, c.says) {
					t.Errorf("%s: got %+v", w, h.err)
				}
			}
			if n := len(s.Asked()); n != len(wires) {
				t.Errorf("asked %d times: the adapter tries again by itself", n)
			}
		})
	}
}

func TestKeyStaysSecret(t *testing.T) {
	for _, reply := range []llmtest.Reply{
		{Status: 401, Message: "the key test-key is wrong"},
		{Status: 500, Body: `{"error":"panic: Bearer test-key"}`},
		{Text: "some text", Break: llmtest.ErrorLate, Code: "x", Message: "test-key expired, and so did secret-header"},
	} {
		s := llmtest.New(t, llmtest.Script(reply))
		for _, w := range wires {
			h := listen(t.Context(), reach(t, s, w, Options{Headers: map[string]string{"X-Auth": "secret-header"}}), hello())
			if h.err == nil || strings.Contains(h.err.Error(), "test-key") || strings.Contains(h.err.Error(), "secret-header") || !strings.Contains(h.err.Error(), "***") {
				t.Errorf("%s: got %v", w, h.err)
			}
		}
	}
}

func TestLateErrors(t *testing.T) {
	const begun = `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n"
	for body, want := range map[string]llm.Class{
		begun + `data: {"error":{"code":429,"message":"Rate limit exceeded"}}` + "\n\n":        llm.ClassRate,
		begun + `data: {"error":{"code":502,"message":"Provider disconnected"}}` + "\n\n":      llm.ClassOverload,
		begun + `data: {"error":{"type":"invalid_request_error","message":"bad"}}` + "\n\n":    llm.ClassRequest,
		begun + `data: {"error":{"message":"maximum context length is 5 tokens"}}` + "\n\n":    llm.ClassContext,
		begun + `data: {"error":"something"}` + "\n\n":                                         llm.ClassInternal,
		begun + `data: {"choices":[{"index":0,"finish_reason":"content_filter"}]}` + "\n\n":    llm.ClassPolicy,
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}` + "\n\n": llm.ClassPolicy,
	} {
		s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: body}))
		h := listen(t.Context(), reach(t, s, llmtest.Chat, Options{}), hello())
		var e *llm.Error
		if !errors.As(h.err, &e) || e.Class != want || !e.Began {
			t.Errorf("%s: got %+v", body, h.err)
		}
	}
	for body, want := range map[string]llm.Class{
		`{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}`:                 llm.ClassRate,
		`{"type":"response.failed","response":{"error":{"code":"server_error","message":"oops"}}}`:                        llm.ClassInternal,
		`{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"flagged"}}}`:                   llm.ClassPolicy,
		`{"type":"response.failed","response":{}}`:                                                                        llm.ClassInternal,
		`{"type":"error","code":"context_length_exceeded","message":"too long"}`:                                          llm.ClassContext,
		`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"}}`: llm.ClassContext,
		`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`:                    llm.ClassPolicy,
	} {
		s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: "data: " + body + "\n\n"}))
		h := listen(t.Context(), reach(t, s, llmtest.Responses, Options{}), hello())
		var e *llm.Error
		if !errors.As(h.err, &e) || e.Class != want {
			t.Errorf("%s: got %+v", body, h.err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Status: 429, RetryAfter: "7"}))
	h := listen(t.Context(), reach(t, s, llmtest.Chat, Options{}), hello())
	var e *llm.Error
	if !errors.As(h.err, &e) || e.RetryAfter != 7*time.Second {
		t.Errorf("got %+v", h.err)
	}
	for _, c := range []struct {
		header http.Header
		want   time.Duration
	}{
		{http.Header{"Retry-After": {"1.5"}}, 1500 * time.Millisecond},
		{http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, 250 * time.Millisecond},
		{http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:04:25 GMT"}, "Date": {"Mon, 02 Jan 2006 15:04:05 GMT"}}, 20 * time.Second},
		{http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:04:05 GMT"}}, 0},
		{http.Header{"Retry-After": {"-3"}}, 0},
		{http.Header{"Retry-After": {"NaN"}}, 0},
		{http.Header{"Retry-After": {"1e300"}}, 24 * time.Hour},
		{http.Header{"Retry-After": {"soon"}}, 0},
		{nil, 0},
	} {
		if got := retryAfter(c.header); got != c.want {
			t.Errorf("%v: got %v, want %v", c.header, got, c.want)
		}
	}
}

func TestLongMessageIsShortened(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Status: 400, Message: strings.Repeat("é", 1<<16)}))
	h := listen(t.Context(), reach(t, s, llmtest.Chat, Options{}), hello())
	if h.err == nil || len(h.err.Error()) > maxMessage+100 {
		t.Errorf("got %d bytes", len(h.err.Error()))
	}
}

func FuzzRefusal(f *testing.F) {
	for _, s := range []string{`{"error":{"code":1,"message":2}}`, `[{"error":"x"}]`, `{"detail":[]}`, `null`, `[`, `{"error":null}`} {
		f.Add([]byte(s), 400)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		said := readRefusal(&refusal{status: status, body: body})
		if said.message == "" || said.class(status) == "" {
			t.Errorf("got %+v", said)
		}
	})
}
