package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/llm"
)

// message sends a request to the Anthropic wire and returns the status and the body.
func message(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

var full = Reply{
	Reasoning: "Let me think.", Text: "Hällo, world", Fragment: 7,
	Calls: []llm.Call{{ID: "a", Name: "f", Args: json.RawMessage(`{"x":"12345678"}`)}, {ID: "b", Name: "g", Args: json.RawMessage(`{}`)}},
	Usage: llm.Usage{Input: 10, Output: 5, CacheRead: 4, CacheWrite: 3},
}

func TestAnthropicStream(t *testing.T) {
	s := New(t, Script(full))
	status, body := message(t, s, `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello"}]}`)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	var order []string
	text := map[string]string{}
	for _, block := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		event, data, _ := strings.Cut(strings.TrimPrefix(block, "event: "), "\ndata: ")
		var e struct {
			Type         string
			ContentBlock struct{ Type string } `json:"content_block"`
			Message      struct{ Usage map[string]int }
			Usage        map[string]int
			Delta        struct {
				Type, Text, Thinking, Signature string
				PartialJSON                     string `json:"partial_json"`
				StopReason                      string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != event {
			t.Fatalf("%q: %v", block, err)
		}
		name := event + e.ContentBlock.Type + e.Delta.Type + e.Delta.StopReason
		if len(order) == 0 || order[len(order)-1] != name {
			order = append(order, name)
		}
		text[e.Delta.Type] += e.Delta.Text + e.Delta.Thinking + e.Delta.Signature + e.Delta.PartialJSON
		if event == "message_start" && e.Message.Usage["input_tokens"] != 3 || event == "message_delta" && e.Usage["output_tokens"] != 5 {
			t.Errorf("usage in %s", data)
		}
		if event == "message_start" && (e.Message.Usage["cache_read_input_tokens"] != 4 || e.Message.Usage["cache_creation_input_tokens"] != 3) {
			t.Errorf("usage in %s", data)
		}
	}
	want := []string{
		"message_start", "ping",
		"content_block_startthinking", "content_block_deltathinking_delta", "content_block_deltasignature_delta", "content_block_stop",
		"content_block_starttext", "content_block_deltatext_delta", "content_block_stop",
		"content_block_starttool_use", "content_block_deltainput_json_delta", "content_block_stop",
		"content_block_starttool_use", "content_block_deltainput_json_delta", "content_block_stop",
		"message_deltatool_use", "message_stop",
	}
	if !slices.Equal(order, want) {
		t.Errorf("the events are %q\nwanted %q", order, want)
	}
	for kind, said := range map[string]string{
		"thinking_delta": full.Reasoning, "signature_delta": anthropicSignature(full.Reasoning),
		"text_delta": full.Text, "input_json_delta": `{"x":"12345678"}{}`,
	} {
		if text[kind] != said {
			t.Errorf("%s says %q, wanted %q", kind, text[kind], said)
		}
	}
}

func TestAnthropicWhole(t *testing.T) {
	s := New(t, Script(full, Reply{Text: "half", Cut: true}, Reply{Text: "no", Code: "refusal"}))
	for _, want := range []string{
		`"content":[{"signature":"` + anthropicSignature(full.Reasoning) + `","thinking":"Let me think.","type":"thinking"},{"text":"Hällo, world","type":"text"},{"id":"a","input":{"x":"12345678"},"name":"f","type":"tool_use"},{"id":"b","input":{},"name":"g","type":"tool_use"}]`,
		`"stop_reason":"max_tokens"`, `"stop_reason":"refusal"`,
	} {
		if _, body := message(t, s, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`); !strings.Contains(body, want) {
			t.Errorf("the answer is %s\nwanted %s", body, want)
		}
	}
}

func TestAnthropicFailure(t *testing.T) {
	s := New(t, Script(Reply{Status: 429, Message: "slower"}, Reply{Status: 529, Message: "busy"}, Reply{Status: 400, Code: "odd_error"}, Reply{Text: "Never whole", Break: ErrorLate}))
	for _, want := range []string{
		`{"message":"slower","type":"rate_limit_error"}`, `{"message":"busy","type":"overloaded_error"}`,
		`{"message":"Bad Request","type":"odd_error"}`, "event: error\ndata: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}",
	} {
		if _, body := message(t, s, `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello"}]}`); !strings.Contains(body, want) {
			t.Errorf("the answer is %s\nwanted %s", body, want)
		}
	}
}

// TestAnthropicRead is about what the wire understands and what it refuses.
func TestAnthropicRead(t *testing.T) {
	signed := func(text string) string {
		return fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":%q}`, text, anthropicSignature(text))
	}
	const user, use, answer = `{"role":"user","content":"hi"}`, `{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`
	assistant := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	const thinking = `"thinking":{"type":"enabled","budget_tokens":1024},`
	for _, test := range []struct{ name, extra, messages, refused string }{
		{"plain", "", user, ""},
		{"thinking comes back", thinking, user + "," + assistant(signed("hm")+","+use) + "," + answer, ""},
		{"thinking is changed", thinking, user + "," + assistant(`{"type":"thinking","thinking":"other","signature":"x"},`+use) + "," + answer, "invalid `signature`"},
		{"thinking is left out", thinking, user + "," + assistant(use) + "," + answer, "expected `thinking`"},
		{"thinking was not there in another turn", thinking, user + "," + assistant(use) + "," + answer + "," + assistant(`{"type":"text","text":"x"}`) + "," + user, ""},
		{"thinking is off", "", user + "," + assistant(use) + "," + answer, ""},
		{"a small budget", `"thinking":{"type":"enabled","budget_tokens":9},`, user, "budget_tokens"},
		{"roles do not alternate", "", user + "," + user, "alternate"},
		{"an empty text", "", `{"role":"user","content":[{"type":"text","text":" "}]}`, "non-whitespace"},
		{"nothing", "", `{"role":"user","content":[]}`, "non-empty"},
		{"a late result", "", user + "," + assistant(use) + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`, "come first"},
		{"no result", "", user + "," + assistant(use) + "," + user, "no result"},
		{"arguments that are none", "", user + "," + assistant(`{"type":"tool_use","id":"a","name":"f","input":"x"}`) + "," + answer, "dictionary"},
		{"an image by address", "", `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"x"}}]}`, "could not process"},
		{"too many marks", "", `{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`, "maximum of 4"},
		{"a stranger", "", `{"role":"system","content":"x"}`, "unknown role"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(t, Script(Reply{Text: "ok"}))
			status, body := message(t, s, `{"model":"m","max_tokens":2000,`+test.extra+`"messages":[`+test.messages+`]}`)
			if test.refused == "" {
				if status != http.StatusOK {
					t.Errorf("%d %s", status, body)
				}
				return
			}
			if status != http.StatusBadRequest || !strings.Contains(body, test.refused) || !strings.Contains(body, "invalid_request_error") || len(s.Complaints()) != 1 {
				t.Errorf("%d %s, wanted %q", status, body, test.refused)
			}
		})
	}
}

func TestAnthropicAsked(t *testing.T) {
	s := New(t, Script(Reply{Text: "ok"}))
	message(t, s, `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"Be brief."}],"tools":[{"name":"f"}],"messages":[
		{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
		{"role":"assistant","content":[{"type":"text","text":"I do."},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"no"}]},{"type":"text","text":"go on"}]}]}`)
	a := s.Asked()[0]
	want := []llm.Message{
		{Role: llm.User, Text: "hi", Images: []string{"data:image/png;base64,AAAA"}},
		{Role: llm.Assistant, Text: "I do.", Calls: []llm.Call{{ID: "a", Name: "f", Args: json.RawMessage(`{"x":1}`)}}},
		{Role: llm.ToolResult, Call: "a", Text: "no", Failed: true},
		{Role: llm.User, Text: "go on"},
	}
	if !reflect.DeepEqual(a.Messages, want) {
		t.Errorf("understood %+v\nwanted %+v", a.Messages, want)
	}
	if a.Wire != Anthropic || a.Model != "m" || a.System != "Be brief." || a.Stream || !slices.Equal(a.Tools, []string{"f"}) {
		t.Errorf("understood %+v", a)
	}
}

func FuzzAnthropicRead(f *testing.F) {
	f.Add([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`))
	f.Add([]byte(`{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image"}]}]}]}`))
	f.Add([]byte(`{"max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		_, _ = anthropicWire{}.read(&http.Request{Header: http.Header{"Anthropic-Version": {"x"}}}, body)
	})
}
