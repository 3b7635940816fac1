package openai

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// sse is a stream of these chunks.
func sse(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n"
}

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

const (
	stop   = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	ending = "[DONE]"
)

// TestOddServers has what real servers make of OpenAI's wire.
func TestOddServers(t *testing.T) {
	for _, c := range []struct {
		name, body            string
		text, reasoning, args string // args are names and arguments of all calls
		input                 int64
	}{
		{"no counts", sse(delta(`{"content":"hi"}`), stop, ending), "hi", "", "", 0},
		{"no last frame", sse(delta(`{"content":"hi"}`), stop), "hi", "", "", 0},
		{"no reason", sse(delta(`{"content":"hi"}`), `{"choices":[],"usage":{"prompt_tokens":3}}`, ending), "hi", "", "", 3},
		{"null reasons", sse(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}],"usage":null}`, stop), "hi", "", "", 0},
		{"counts in every chunk", sse(`{"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":{"prompt_tokens":3}}`, stop), "hi", "", "", 3},
		{"a filter's report first", sse(`{"choices":[],"prompt_filter_results":[{}]}`, delta(`{"content":"hi"}`), stop), "hi", "", "", 0},
		{"comments", ": PROCESSING\n\n" + sse(delta(`{"content":"hi"}`), stop), "hi", "", "", 0},
		{"another choice", sse(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, delta(`{"content":"hi"}`), stop), "hi", "", "", 0},
		{"reasoning", sse(delta(`{"reasoning":"hm","content":""}`), delta(`{"reasoning":"","content":"hi"}`), stop), "hi", "hm", "", 0},
		{"reasoning twice", sse(delta(`{"reasoning":"hm","reasoning_content":"hm"}`), delta(`{"reasoning":null,"content":"hi"}`), stop), "hi", "hm", "", 0},
		{"a refusal", sse(delta(`{"refusal":"I may not"}`), stop), "I may not", "", "", 0},
		{"interleaved calls", sse(
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}`),
			delta(`{"tool_calls":[{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}]}`),
			stop), "", "", `f{"x":1} g{"y":2}`, 0},
		{"names in every fragment", sse(
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}]}`),
			stop), "", "", `f{"x":1}`, 0},
		{"no ids", sse(
			delta(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"f","arguments":"{}"}}]}`),
			stop), "", "", `f{} f{}`, 0},
		{"no indices", sse(
			delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}`),
			delta(`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}`),
			stop), "", "", `f{"x":1} g{}`, 0},
		{"neither", sse(
			delta(`{"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}},{"function":{"name":"f","arguments":"{\"x\":2}"}}]}`),
			stop), "", "", `f{"x":1} f{"x":2}`, 0},
		{"the same id twice", sse(
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}]}`),
			stop), "", "", `f{} g{}`, 0},
		{"null arguments", sse(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]}`), stop), "", "", `f{}`, 0},
		{"arguments that are no object", sse(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}}]}`), stop), "", "", `f"[1]"`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: c.body}))
			h := listen(t.Context(), reach(t, s, llmtest.Chat, Options{Compatible: true}), hello())
			if h.err != nil {
				t.Fatal(h.err)
			}
			var args []string
			ids := map[string]bool{"": true}
			for _, call := range h.calls {
				if ids[call.ID] {
					t.Errorf("the id %q is not a call's own", call.ID)
				}
				ids[call.ID] = true
				args = append(args, call.Name+string(call.Args))
			}
			if h.text != c.text || h.reasoning != c.reasoning || strings.Join(args, " ") != c.args || h.done.Usage.Input != c.input {
				t.Errorf("got %+v", h)
			}
		})
	}
}

func TestKeepsWhatServersWantBack(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(
		llmtest.Reply{Body: sse(
			delta(`{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`),
			delta(`{"reasoning_details":[{"type":"reasoning.text","signature":"s1"}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s2"}}}]}`),
			stop)},
		llmtest.Reply{Text: "ok"},
	))
	m := reach(t, s, llmtest.Chat, Options{Compatible: true})
	h := listen(t.Context(), m, hello())
	if h.err != nil {
		t.Fatal(h.err)
	}
	req := hello()
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Calls: h.calls, Raw: h.done.Raw},
		llm.Message{Role: llm.ToolResult, Call: "a", Name: "f"})
	if h := listen(t.Context(), m, req); h.err != nil {
		t.Fatal(h.err)
	}
	var body struct {
		Messages []struct {
			Reasoning string            `json:"reasoning"`
			Details   []json.RawMessage `json:"reasoning_details"`
			Calls     []struct {
				Extra json.RawMessage `json:"extra_content"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(s.Asked()[1].Body, &body); err != nil {
		t.Fatal(err)
	}
	got := body.Messages[2]
	if got.Reasoning != "hm" || len(got.Details) != 2 || len(got.Calls) != 1 || string(got.Calls[0].Extra) != `{"google":{"thought_signature":"s2"}}` {
		t.Errorf("got %s", s.Asked()[1].Body)
	}
}

func FuzzFragments(f *testing.F) {
	f.Add(int64(0), "a", "f", `{"x"`, int64(0), "", "", `:1}`)
	f.Add(int64(0), "", "f", `{}`, int64(0), "", "f", `{}`)
	f.Fuzz(func(t *testing.T, i1 int64, id1, n1, a1 string, i2 int64, id2, n2, a2 string) {
		var p pieces
		for _, d := range []sdk.ChatCompletionChunkChoiceDeltaToolCall{
			{Index: i1, ID: id1, Function: sdk.ChatCompletionChunkChoiceDeltaToolCallFunction{Name: n1, Arguments: a1}},
			{Index: i2, ID: id2, Function: sdk.ChatCompletionChunkChoiceDeltaToolCallFunction{Name: n2, Arguments: a2}},
		} {
			p.add(d)
		}
		ids := map[string]bool{"": true}
		for _, c := range p.calls() {
			if ids[c.ID] || !json.Valid(c.Args) || !json.Valid([]byte(sent(c.Args))) {
				t.Errorf("got %+v", c)
			}
			ids[c.ID] = true
		}
	})
}
