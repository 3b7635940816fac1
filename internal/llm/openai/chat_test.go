package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

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
		{"arguments that are JSON", sse(delta(`{"tool_calls":[{"index":"1","id":7,"function":{"name":"f","arguments":{"a": 1}}}]}`), stop), "", "", `f{"a": 1}`, 0},
		{"nothing but nulls", sse(`null`, `{"choices":null}`, delta(`null`), delta(`{"content":null,"reasoning_details":null,"tool_calls":[null]}`),
			delta(`{"content":"hi","tool_calls":[{"index":null,"id":null,"function":null,"extra_content":null}]}`), stop), "hi", "", "", 0},
		{"no error", sse(`{"error":null,"choices":[{"index":0,"delta":{"content":"hi"}}]}`, stop), "hi", "", "", 0},
		{"values of another kind", sse(`{"choices":{"a":1}}`, `{"choices":[5,"x"]}`, delta(`5`), delta(`{"tool_calls":{},"reasoning":{"a":1},"reasoning_details":{"a":1},"content":"hi"}`),
			delta(`{"tool_calls":[5,{"function":"f"}],"content":[" you"]}`), stop), `hi[" you"]`, "", "", 0},
		{"numbers as they like", sse(`{"choices":[{"index":"0","delta":{"content":"h"}}]}`, `{"choices":[{"index":0.0,"delta":{"content":"i"}}]}`,
			`{"choices":[{"index":"1","delta":{"content":"no"}}]}`, `{"choices":[],"usage":{"prompt_tokens":"3","prompt_tokens_details":[]}}`), "hi", "", "", 3},
		{"a name twice, broken letters", sse(delta("{\"content\":\"x\",\"content\":\"\xff\\ud800\"}"), stop), "\ufffd\ufffd", "", "", 0},
		{"data in two lines", "data: {\"choices\":\r\ndata: [{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\r\nid: 4\r\n\r\n" + sse(stop), "hi", "", "", 0},
		{"nonsense after the end", sse(delta(`{"content":"hi"}`), stop, `{bad`), "hi", "", "", 0},
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

// TestUnreadable has what is no answer at all.
func TestUnreadable(t *testing.T) {
	for _, w := range wires {
		for frame, says := range map[string]string{`5`: "a JSON number", `"x"`: "a JSON string", `[]`: "a JSON array", `{"a":`: "unexpected", delta(`{}`) + ` x`: "'x'"} {
			s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: sse(frame, stop)}))
			h := listen(t.Context(), reach(t, s, w, Options{}), hello())
			var e *llm.Error
			if !errors.As(h.err, &e) || e.Class != llm.ClassInternal || !strings.Contains(e.Message, says) {
				t.Errorf("%s: %s gives %v", w, frame, h.err)
			}
		}
	}
}

// TestOddResponses has values of other kinds than OpenAI sends.
func TestOddResponses(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: sse(
		`null`, `{"type":"response.created","response":5}`,
		`{"type":"response.reasoning_summary_part.added","summary_index":"1"}`,
		`{"type":"response.output_text.delta","delta":5}`,
		`{"type":"response.output_item.done","item":5}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","call_id":5,"name":"f","arguments":{"a":1}}}`,
		`{"type":"response.completed","error":null,"response":{"usage":{"input_tokens":"3","input_tokens_details":null},"incomplete_details":null}}`,
	)}))
	h := listen(t.Context(), reach(t, s, llmtest.Responses, Options{}), hello())
	if h.err != nil || h.text != "5" || h.reasoning != "\n\n" || len(h.calls) != 1 || h.done.Usage.Input != 3 {
		t.Fatalf("got %+v", h)
	}
	if c := h.calls[0]; c.ID != "5" || string(c.Args) != `{"a":1}` {
		t.Errorf("got %s", h.calls)
	}
}

// FuzzFrames reads whatever a server may send: every object is a frame, and what
// is not JSON is none.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(delta(`{"content":"x","tool_calls":[{"index":1e99,"function":{"arguments":[]}}]}`)))
	f.Add([]byte(`{"type":"error","error":{"code":5},"item":{"summary":[]}}`))
	f.Add([]byte(`{"choices":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, err := range []error{read(data, &chatChunk{}), read(data, &responseEvent{})} {
			var unreadable *unreadableError
			if bad := errors.As(err, &unreadable); bad && isObject(data) || !bad && !json.Valid(data) {
				t.Errorf("%q: %v", data, err)
			}
		}
	})
}

func FuzzFragments(f *testing.F) {
	f.Add(int64(0), "a", "f", `{"x"`, int64(0), "", "", `:1}`)
	f.Add(int64(0), "", "f", `{}`, int64(0), "", "f", `{}`)
	f.Fuzz(func(t *testing.T, i1 int64, id1, n1, a1 string, i2 int64, id2, n2, a2 string) {
		var p pieces
		for _, d := range []fragment{{Index: number(i1), ID: text(id1)}, {Index: number(i2), ID: text(id2)}} {
			d.Function.Name, d.Function.Arguments = text(n1), text(a1)
			n1, a1 = n2, a2
			p.add(d)
		}
		ids := map[string]bool{"": true}
		for _, c := range p.calls() {
			if ids[c.ID] || !json.Valid(c.Args) || !json.Valid(sent(c.Args)) {
				t.Errorf("got %+v", c)
			}
			ids[c.ID] = true
		}
	})
}
