package connect_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
)

// stepWires are a model of each API, with a short answer of its server.
var stepWires = map[string]struct{ model, answer string }{
	"chat":      {"openai/gpt-4o", `data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"},
	"responses": {"openai/responses/gpt-5", `data: {"type":"response.completed","response":{"usage":{"input_tokens":3}}}` + "\n\n"},
	"anthropic": {"anthropic/claude-sonnet-4-5", "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
	"gemini":    {"gemini/gemini-2.5-pro", `data: {"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}` + "\n\n"},
}

// longTalk is a request with n messages and twelve tools: a person asks once, then the model
// calls and a tool answers.
func longTalk(n int) llm.Request {
	req := llm.Request{System: strings.Repeat("You do what you are asked, and say so.\n", 100), MaxOutput: 8000, Conversation: "c1"}
	for i := range 12 {
		req.Tools = append(req.Tools, llm.Tool{
			Name:        fmt.Sprintf("tool_%d", i),
			Description: strings.Repeat("It does one thing. ", 20),
			Schema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"` +
				strings.Repeat("where it is ", 20) + `"},"lines":{"type":"array","items":{"type":"integer"}}}}`),
		})
	}
	output := strings.Repeat("\tif err != nil { return \"a line of code\" }\n", 40)
	req.Messages = []llm.Message{{Role: llm.User, Text: "Please look at each file, and change it."}}
	for i := 1; len(req.Messages) < n; i++ {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.Assistant, Text: "Now the next.", Calls: []llm.Call{{ID: id, Name: "tool_1", Args: json.RawMessage(`{"path":"/workspace/main.go","lines":[1,200]}`)}}},
			llm.Message{Role: llm.ToolResult, Call: id, Name: "tool_1", Text: output})
	}
	return req
}

// BenchmarkStep sends the next step of a conversation to a server on this machine.
func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"chat", "responses", "anthropic", "gemini"} {
		for _, n := range []int{10, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				buf := make([]byte, 256<<10)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					for err := error(nil); err == nil; {
						_, err = r.Body.Read(buf)
					}
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = w.Write([]byte(stepWires[name].answer))
				}))
				defer server.Close()
				m, err := connect.Open(llm.Config{Model: stepWires[name].model, APIKey: "k", BaseURL: server.URL, Client: server.Client()}, catalogue.New(nil))
				if err != nil {
					b.Fatal(err)
				}
				const steps = 32 // until the history is as short as before
				req := longTalk(n + 2*steps)
				ask := func(messages []llm.Message) {
					req.Messages = messages
					for _, err := range m.Stream(b.Context(), req) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
				all := req.Messages
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if i%steps == 0 {
						b.StopTimer()
						req.Written = &llm.Written{}
						ask(all[:n])
						b.StartTimer()
					}
					ask(all[:n+2*(i%steps+1)])
				}
			})
		}
	}
}
