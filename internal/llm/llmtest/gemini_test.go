package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/llm"
)

const helloGemini = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`

func TestGeminiStream(t *testing.T) {
	s := New(t, Script(full))
	status, _, body, err := post(t, client(t), s.URL+"/v1beta/models/m:streamGenerateContent?alt=sse", helloGemini)
	if err != nil || status != http.StatusOK {
		t.Fatal(status, body, err)
	}
	var text, thought, calls, finish string
	var usage map[string]int
	for _, data := range frames(t, body) {
		var chunk struct {
			UsageMetadata map[string]int
			Candidates    []struct {
				FinishReason string
				Content      struct{ Parts []geminiPart }
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		usage = chunk.UsageMetadata
		finish += chunk.Candidates[0].FinishReason
		for _, p := range chunk.Candidates[0].Content.Parts {
			switch {
			case p.FunctionCall != nil:
				calls += p.FunctionCall.ID + p.FunctionCall.Name + string(p.FunctionCall.Args) + p.ThoughtSignature
			case p.Thought:
				thought += p.Text
			default:
				text += p.Text
			}
		}
	}
	if text != full.Text || thought != full.Reasoning || finish != "STOP" {
		t.Errorf("it says %q, thinks %q, ends with %q", text, thought, finish)
	}
	if want := `af{"x":"12345678"}` + geminiSignature(full.Calls[0]) + `bg{}`; calls != want {
		t.Errorf("it calls %q, wanted %q", calls, want)
	}
	want := map[string]int{"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "totalTokenCount": 15}
	if !reflect.DeepEqual(usage, want) {
		t.Errorf("usage %v, wanted %v", usage, want)
	}
}

func TestGeminiWhole(t *testing.T) {
	s := New(t, Script(full, Reply{Text: "half", Cut: true}, Reply{Text: "half", Code: "SAFETY"}, Reply{Code: "BLOCKLIST"}))
	for _, want := range []string{
		`"parts":[{"text":"Let me think.","thought":true},{"text":"Hällo, world"},{"functionCall":{"args":{"x":"12345678"},"id":"a","name":"f"},"thoughtSignature":"` + geminiSignature(full.Calls[0]) + `"},{"functionCall":{"args":{},"id":"b","name":"g"}}]`,
		`"finishReason":"MAX_TOKENS"`, `"finishReason":"SAFETY"`, `"promptFeedback":{"blockReason":"BLOCKLIST"}`,
	} {
		if _, _, body, err := post(t, client(t), s.URL+"/v1beta/models/m:generateContent", helloGemini); err != nil || !strings.Contains(body, want) {
			t.Errorf("the answer is %s, %v\nwanted %s", body, err, want)
		}
	}
	if s.Asked()[0].Stream {
		t.Error("it was taken for a stream")
	}
}

func TestGeminiFailure(t *testing.T) {
	s := New(t, Script(
		Reply{Status: 429, Message: "slower", RetryAfter: "7"}, Reply{Status: 400, Code: "API_KEY_INVALID"},
		Reply{Status: 400, Code: "INTERNAL"}, Reply{Status: 418}, Reply{Text: "Never whole", Break: ErrorLate},
	))
	for _, want := range []string{
		`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}],"message":"slower","status":"RESOURCE_EXHAUSTED"`,
		`"reason":"API_KEY_INVALID"}],"message":"Bad Request","status":"INVALID_ARGUMENT"`,
		`"status":"INTERNAL"`, `"status":"UNKNOWN"`, `data: {"error":{"code":503,`,
	} {
		if _, _, body, err := post(t, client(t), s.URL+"/v1beta/models/m:streamGenerateContent?alt=sse", helloGemini); err != nil || !strings.Contains(body, want) {
			t.Errorf("the answer is %s, %v\nwanted %s", body, err, want)
		}
	}
}

// TestGeminiRead is about what the wire understands and what it refuses.
func TestGeminiRead(t *testing.T) {
	const user = `{"role":"user","parts":[{"text":"hi"}]}`
	call := func(signature string) string {
		return fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":%q}]}`, signature)
	}
	const result = `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}`
	good := geminiSignature(llm.Call{Name: "f"})
	for _, test := range []struct{ name, model, contents, refused string }{
		{"plain", "gemini-3", user, ""},
		{"signed", "gemini-3", user + "," + call(good) + "," + result, ""},
		{"another model's", "gemini-3", user + "," + call(geminiSkip) + "," + result, ""},
		{"not signed", "gemini-3", user + "," + call("") + "," + result, "missing a thought_signature"},
		{"not signed before", "gemini-2.5-pro", user + "," + call("") + "," + result, ""},
		{"changed", "gemini-2.5-pro", user + "," + call("QUFB") + "," + result, "signature is not valid"},
		{"no result", "gemini-3", user + "," + call(good) + "," + user, "number of function response parts"},
		{"a result of nothing", "gemini-3", user + "," + result, "number of function response parts"},
		{"a nameless result", "gemini-3", user + "," + call(good) + `,{"role":"user","parts":[{"functionResponse":{"response":{}}}]}`, "name"},
		{"an empty part", "gemini-3", `{"role":"user","parts":[{"text":""}]}`, "required oneof field"},
		{"nothing", "gemini-3", `{"role":"user","parts":[]}`, "must not be empty"},
		{"a stranger", "gemini-3", `{"role":"system","parts":[{"text":"x"}]}`, "valid role"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(t, Script(Reply{Text: "ok"}))
			status, _, body, err := post(t, client(t), s.URL+"/v1beta/models/"+test.model+":generateContent", `{"contents":[`+test.contents+`]}`)
			if err != nil {
				t.Fatal(err)
			}
			if test.refused == "" {
				if status != http.StatusOK {
					t.Errorf("%d %s", status, body)
				}
				return
			}
			if status != http.StatusBadRequest || !strings.Contains(body, test.refused) || !strings.Contains(body, "INVALID_ARGUMENT") || len(s.Complaints()) != 1 {
				t.Errorf("%d %s, wanted %q", status, body, test.refused)
			}
		})
	}
}

func TestGeminiAsked(t *testing.T) {
	s := New(t, Script(Reply{Text: "ok"}))
	post(t, client(t), s.URL+"/v1beta/models/gemini-2.5-pro:generateContent", `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"f"}]}],"contents":[
		{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
		{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I do."},{"functionCall":{"name":"f","args":{"x":1}}},{"functionCall":{"id":"b","name":"f"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"yes"}}},{"functionResponse":{"id":"b","name":"f","response":{"error":"no"}}},{"text":"go on"}]}]}`)
	a := s.Asked()[0]
	want := []llm.Message{
		{Role: llm.User, Text: "hi", Images: []string{"data:image/png;base64,AAAA"}},
		{Role: llm.Assistant, Text: "I do.", Calls: []llm.Call{{ID: "f#0", Name: "f", Args: json.RawMessage(`{"x":1}`)}, {ID: "b", Name: "f", Args: json.RawMessage(`{}`)}}},
		{Role: llm.ToolResult, Call: "f#0", Name: "f", Text: "yes"},
		{Role: llm.ToolResult, Call: "b", Name: "f", Text: "no", Failed: true},
		{Role: llm.User, Text: "go on"},
	}
	if !reflect.DeepEqual(a.Messages, want) {
		t.Errorf("understood %+v\nwanted %+v", a.Messages, want)
	}
	if a.Wire != Gemini || a.Model != "gemini-2.5-pro" || a.System != "Be brief." || a.Stream || !slices.Equal(a.Tools, []string{"f"}) {
		t.Errorf("understood %+v", a)
	}
}

func FuzzGeminiRead(f *testing.F) {
	f.Add([]byte(helloGemini))
	f.Add([]byte(`{"contents":[{"role":"model","parts":[{"functionCall":{}}]},{"role":"user","parts":[{"functionResponse":{"name":"f"}}]}]}`))
	f.Add([]byte(`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f"}},{"functionResponse":{"name":"f"}}]}]}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		_, _ = geminiWire{}.read(&http.Request{URL: &url.URL{Path: "/v1beta/models/gemini-3:generateContent"}}, body)
	})
}
