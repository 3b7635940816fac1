package openai

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// sentCase is a request and the options of the model that it is for.
type sentCase struct {
	name string
	wire llmtest.Wire
	opts Options
	req  llm.Request
}

// everything is a history with each thing that can be in one.
func everything() llm.Request {
	req := hello()
	req.System = "Quotes \" and \\, lines\n\ttabs\r, <tags> & more, \u2028, \x01, ünïcödé 🙂, broken \xff."
	req.Stop = []string{"</call>", "\n\n"}
	req.Tools = append(req.Tools,
		llm.Tool{Name: "null", Schema: json.RawMessage(`null`)},
		llm.Tool{Name: "list", Schema: json.RawMessage(`[1]`)},
		llm.Tool{Name: "broken", Schema: json.RawMessage(`{"type":`)},
		llm.Tool{Name: "typeless", Schema: json.RawMessage("{\n  \"type\": null,\n  \"properties\": null, \"$defs\": {\"a<b>\": {\"const\": 1.50}} }")},
		llm.Tool{Name: "other", Schema: json.RawMessage(`{"type":"string","properties":{}}`)},
		llm.Tool{Name: "quo\"te", Description: "a \"word\"\n", Schema: json.RawMessage(`{}`)},
	)
	req.Messages = []llm.Message{
		{Role: llm.User, Text: "look", Images: []string{dot, dot}},
		{Role: llm.User, Images: []string{dot}},
		{Role: llm.User},
		{Role: llm.Assistant},
		{Role: llm.Assistant, Text: "I see"},
		{Role: llm.User, Text: "do \"it\"", Aside: true},
		{Role: llm.Assistant, Text: "I do", Calls: []llm.Call{
			{ID: "1", Name: "f", Args: json.RawMessage("{\"x\": \"a \\\"b\\\" \\n\",\n \"y\":[1,{}]}")},
			{ID: "2", Name: "g", Args: json.RawMessage(`"not json"`)},
			{ID: "3", Name: "g", Args: json.RawMessage(`{"broken": `)},
			{ID: "4", Name: "g"},
			{ID: "5", Name: "g", Args: json.RawMessage(` [1]`)},
			{ID: "6", Name: "g", Args: json.RawMessage(` {"x":1} `)},
			{ID: "7", Name: "g", Args: json.RawMessage(`null`)},
			{ID: "8", Name: "g", Args: json.RawMessage("{\"\xff\":1, \"a\":1, \"a\":2}")},
		}},
	}
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		req.Messages = append(req.Messages, llm.Message{Role: llm.ToolResult, Call: id, Name: "f", Text: "result\n" + id, Failed: id == "2"})
	}
	req.Messages[7].Images = []string{dot}
	req.Messages[9].Images = []string{dot, dot}
	req.Messages[10].Text = ""
	return append2(req,
		llm.Message{Role: llm.Assistant, Text: "kept", Calls: []llm.Call{{ID: "k1", Name: "f", Args: json.RawMessage(`{}`)}, {ID: "k2", Name: "f", Args: json.RawMessage(`{}`)}},
			Raw: json.RawMessage(`{"from":"openai-chat","model":"m","fields":{"reasoning":"h\"m","reasoning_details":[{"text":"h<m"}, {"s":1}]},"calls":{"k2":{"google":{"thought_signature":"s2"}},"gone":{}}}`)},
		llm.Message{Role: llm.ToolResult, Call: "k1", Name: "f", Text: "r", Images: []string{dot}},
		llm.Message{Role: llm.ToolResult, Call: "k2", Name: "f", Text: "r"},
		llm.Message{Role: llm.Assistant, Text: "kept too", Calls: []llm.Call{{ID: "r1", Name: "f", Args: json.RawMessage(`{}`)}, {ID: "r2", Name: "f", Args: json.RawMessage(`{}`)}},
			Raw: json.RawMessage(`{"from":"openai-responses","model":"m","thoughts":[{"item":{"type":"reasoning","id":"t0","summary":[],"encrypted_content":"e0"}},{"call":"r2","item":{"type":"reasoning","id":"t1","summary":[],"encrypted_content":"e1"}},{"call":"r2","item":{"type":"reasoning","id":"t2","summary":null,"encrypted_content":"e2"}},{"call":"gone","item":{"type":"reasoning"}}]}`)},
		llm.Message{Role: llm.ToolResult, Call: "r1", Name: "f", Text: "r"},
		llm.Message{Role: llm.ToolResult, Call: "r2", Name: "f", Text: "r"},
		llm.Message{Role: llm.Assistant, Text: "another's", Raw: json.RawMessage(`{"from":"openai-chat","model":"n","fields":{"reasoning":"no"}}`)},
		llm.Message{Role: llm.Assistant, Text: "another's", Raw: json.RawMessage(`{"from":"openai-responses","model":"n","thoughts":[{"item":{"no":1}}]}`)},
		llm.Message{Role: llm.Assistant, Text: "a stranger's", Raw: json.RawMessage(`{"from":"gemini","model":"m","fields":{"reasoning":"no"}}`)},
		llm.Message{Role: llm.Assistant, Text: "broken", Raw: json.RawMessage(`{"from":"openai-chat","model":"m","fields":`)},
		llm.Message{Role: llm.ToolResult, Call: "x", Name: "g", Images: []string{dot}},
	)
}

func append2(req llm.Request, m ...llm.Message) llm.Request {
	req.Messages = append(req.Messages, m...)
	return req
}

func sentCases() []sentCase {
	small := llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}
	return []sentCase{
		{"chat, everything", llmtest.Chat, Options{}, everything()},
		{"chat, compatible", llmtest.Chat, Options{Compatible: true, Effort: "high"}, hello()},
		{"chat, azure", llmtest.Chat, Options{Azure: true, Thinks: true}, hello()},
		{"chat, effort", llmtest.Chat, Options{Effort: "low", Thinks: true}, hello()},
		{"chat, small", llmtest.Chat, Options{}, small},
		{"chat, nothing", llmtest.Chat, Options{}, llm.Request{}},
		{"responses, everything", llmtest.Responses, Options{}, everything()},
		{"responses, thinks", llmtest.Responses, Options{Thinks: true, Effort: "low"}, everything()},
		{"responses, thinks as it likes", llmtest.Responses, Options{Thinks: true}, hello()},
		{"responses, compatible", llmtest.Responses, Options{Compatible: true, Effort: "high"}, hello()},
		{"responses, small", llmtest.Responses, Options{}, small},
		{"responses, nothing", llmtest.Responses, Options{}, llm.Request{}},
	}
}

func TestGenerate(t *testing.T) {
	out := map[string]json.RawMessage{}
	for _, c := range sentCases() {
		s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "ok"}))
		listen(t.Context(), reach(t, s, c.wire, c.opts), c.req)
		var v any
		if err := json.Unmarshal(s.Asked()[0].Body, &v); err != nil {
			t.Fatal(c.name, err)
		}
		out[c.name], _ = json.Marshal(v)
	}
	b, _ := json.MarshalIndent(out, "", "  ")
	os.WriteFile("testdata/requests.json", append(b, '\n'), 0o644)
	_ = reflect.DeepEqual
}
