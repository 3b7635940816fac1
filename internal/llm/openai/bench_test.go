package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/llm"
)

// longTalk is a request with a history of n messages and twelve tools: a person
// asks, the model calls, a tool answers, the model speaks.
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
	output := strings.Repeat("\tif err != nil { return \"a line of code\" }\n", 20)
	for i := range n {
		id := fmt.Sprintf("call_%d", i/4)
		req.Messages = append(req.Messages, []llm.Message{
			{Role: llm.User, Text: "Please look at the next file, and change it."},
			{Role: llm.Assistant, Calls: []llm.Call{{ID: id, Name: "tool_1", Args: json.RawMessage(`{"path":"/workspace/main.go","lines":[1,200]}`)}}},
			{Role: llm.ToolResult, Call: id, Name: "tool_1", Text: output},
			{Role: llm.Assistant, Text: "The file is as it should be, and I changed nothing in it."},
		}[i%4])
	}
	return req
}

// canned answers every request with the same stream, without a network.
func canned(stream string) llm.Config {
	answer := transport(func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		return &http.Response{
			StatusCode: http.StatusOK, Request: r,
			Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body:   io.NopCloser(strings.NewReader(stream)),
		}, nil
	})
	return llm.Config{APIKey: "test-key", BaseURL: "http://192.0.2.1/v1", Client: &http.Client{Transport: answer}}
}

const (
	shortChat     = `data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	shortResponse = `data: {"type":"response.completed","response":{"usage":{"input_tokens":3}}}` + "\n\n"
)

// ask is one round of a benchmark.
func ask(b *testing.B, m llm.Model, req llm.Request) {
	for _, err := range m.Stream(b.Context(), req) {
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChatRequest(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, req := Chat(canned(shortChat), "m", Options{}), longTalk(n)
			b.ReportAllocs()
			for b.Loop() {
				ask(b, m, req)
			}
		})
	}
}

// BenchmarkChatReasoning sends a history in which the model thought before each call.
func BenchmarkChatReasoning(b *testing.B) {
	m, req := Chat(canned(shortChat), "m", Options{}), longTalk(1000)
	kept, err := json.Marshal(chatKept{From: fromChat, Model: "m", Fields: map[string]jsontext.Value{
		"reasoning": jsontext.Value(`"` + strings.Repeat("I must see what is in the file. ", 30) + `"`),
	}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range req.Messages {
		if len(req.Messages[i].Calls) > 0 {
			req.Messages[i].Raw = kept
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		ask(b, m, req)
	}
}

func BenchmarkResponsesRequest(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, req := Responses(canned(shortResponse), "m", Options{}), longTalk(n)
			b.ReportAllocs()
			for b.Loop() {
				ask(b, m, req)
			}
		})
	}
}

// BenchmarkChatStream reads an answer of 500 pieces, as OpenAI sends them.
func BenchmarkChatStream(b *testing.B) {
	var stream bytes.Buffer
	for range 500 {
		stream.WriteString(`data: {"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"m","service_tier":"default","system_fingerprint":"fp_fc9f1d7035","choices":[{"index":0,"delta":{"content":" a word"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n")
	}
	stream.WriteString(shortChat)
	m, req := Chat(canned(stream.String()), "m", Options{}), longTalk(1)
	b.ReportAllocs()
	for b.Loop() {
		ask(b, m, req)
	}
}

// BenchmarkResponsesStream reads an answer of 500 pieces, as OpenAI sends them.
func BenchmarkResponsesStream(b *testing.B) {
	var stream bytes.Buffer
	for i := range 500 {
		fmt.Fprintf(&stream, `event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c5","output_index":0,"content_index":0,"delta":" a word","logprobs":[],"obfuscation":"p8sYk2"}

`, i)
	}
	stream.WriteString(shortResponse)
	m, req := Responses(canned(stream.String()), "m", Options{}), longTalk(1)
	b.ReportAllocs()
	for b.Loop() {
		ask(b, m, req)
	}
}
