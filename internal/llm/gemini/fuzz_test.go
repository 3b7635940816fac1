package gemini_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/gemini"
)

// canned is a server that always answers the same.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) { return c.respond(r), nil }

func (c canned) respond(r *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Request: r, Body: io.NopCloser(strings.NewReader(string(c))),
		Header: http.Header{"Content-Type": {"text/event-stream"}},
	}
}

// FuzzAnswer lets a server write anything. The answer must end, in one way, and
// what is in it must be fit for the next request.
func FuzzAnswer(f *testing.F) {
	f.Add("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thoughtSignature\":\"QQ==\"},{\"functionCall\":{\"name\":\"f\",\"args\":{}}}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1}}\n\n")
	f.Add("data: {\"candidates\":[null]}\n\n")
	f.Add("data: {\"candidates\":[{\"content\":{\"parts\":[null]}}]}\n\n")
	f.Add("data: {\"error\":{\"code\":1,\"details\":[{\"violations\":[1]}]}}\n\n")
	f.Add("data: null\n\n{\"error\":null}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		c := llm.Config{APIKey: "test-key", BaseURL: "http://127.0.0.1", Client: &http.Client{Transport: canned(body)}}
		m := gemini.New(c, older, gemini.Options{Thinks: true})
		h, err := hear(t.Context(), m, ask(said("Hi")))
		if (err == nil) != (h.done != nil) {
			t.Fatalf("it ended with %v and %+v", err, h.done)
		}
		for _, call := range h.calls {
			if !json.Valid(call.Args) {
				t.Errorf("the arguments are %s", call.Args)
			}
		}
		if err == nil {
			_, _ = hear(t.Context(), m, ask(said("Hi"), h.message(), said("Go on.")))
		}
	})
}
