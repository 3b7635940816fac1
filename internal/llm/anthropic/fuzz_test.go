package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/anthropic"
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
	f.Add("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"index\":0,\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"input\":[]}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	f.Add("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":7,\"delta\":null}\n\n")
	f.Add("event: error\ndata: []\n\n")
	f.Add("event: error\ndata: {\"error\":{}}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		c := llm.Config{APIKey: "test-key", BaseURL: "http://127.0.0.1", Client: &http.Client{Transport: canned(body)}}
		m := anthropic.New(c, old, anthropic.Options{Thinks: true})
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
