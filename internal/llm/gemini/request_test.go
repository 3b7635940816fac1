package gemini_test

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/gemini"
	"deckhand/internal/llm/llmtest"
)

const dot = "data:image/png;base64,iVBORw0KGgo="

func run(id, args string) llm.Call { return llm.Call{ID: id, Name: "run", Args: json.RawMessage(args)} }

func result(id, text string) llm.Message {
	return llm.Message{Role: llm.ToolResult, Call: id, Name: "run", Text: text}
}

// TestConversation sends everything that a history can have, and reads it back.
func TestConversation(t *testing.T) {
	for _, name := range []string{older, newer} {
		s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "Yes."}))
		failed := result("b", "no such file")
		failed.Failed = true
		history := []llm.Message{
			{Role: llm.User, Text: "Look.", Images: []string{dot, dot}},
			{Role: llm.User, Text: "And again."},
			{Role: llm.Assistant, Text: "I run two.", Calls: []llm.Call{run("a", `{"command":"ls"}`), run("b", `{"n":5}`)}},
			result("a", "files"), failed,
			{Role: llm.User, Text: "Go on."},
			{Role: llm.Assistant, Calls: []llm.Call{run("c", `{}`)}},
			result("c", ""),
			{Role: llm.Assistant, Text: "Done."},
			{Role: llm.User, Images: []string{dot}},
		}
		if _, err := hear(t.Context(), dial(t, s, name, gemini.Options{}), ask(history...)); err != nil {
			t.Fatal(err)
		}
		if a := last(t, s); !reflect.DeepEqual(a.Messages, history) {
			t.Errorf("the server understood %+v\nwanted %+v", a.Messages, history)
		}
	}
}

// TestTidied is about what a history should not have, and what the API has no place for.
func TestTidied(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "Yes."}))
	history := []llm.Message{
		said("Hi"), said(" \n"),
		{Role: llm.Assistant, Text: "\n"},
		{Role: llm.User, Text: "See: ", Images: []string{"https://example.com/a.png", "data:image/png;base64,?"}},
		{Role: llm.Assistant, Calls: []llm.Call{run("a", `"{cut"`), run("b", `{}`)}},
		{Role: llm.ToolResult, Call: "a", Text: "seen", Images: []string{dot}}, // without the tool's name
		result("b", "ok"),
		said("Well?"),
	}
	if _, err := hear(t.Context(), dial(t, s, older, gemini.Options{}), ask(history...)); err != nil {
		t.Fatal(err)
	}
	unreadable := "[There was an image here that could not be read.]"
	want := []llm.Message{
		said("Hi"), said("See: " + unreadable + unreadable),
		{Role: llm.Assistant, Calls: []llm.Call{run("a", `{"not_an_object":"\"{cut\""}`), run("b", `{}`)}},
		result("a", "seen"), result("b", "ok"),
		{Role: llm.User, Text: "What run shows:", Images: []string{dot}},
		said("Well?"),
	}
	if a := last(t, s); !reflect.DeepEqual(a.Messages, want) {
		t.Errorf("the server understood %+v\nwanted %+v", a.Messages, want)
	}
}

func TestTools(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "Yes."}))
	if _, err := hear(t.Context(), dial(t, s, older, gemini.Options{Thinks: true}), ask(said("Hi"))); err != nil {
		t.Fatal(err)
	}
	body := string(last(t, s).Body)
	for _, want := range []string{
		`"parametersJsonSchema":{"additionalProperties":false,"properties":{"command":{"minLength":1,"type":"string"}},"required":["command"],"type":"object"}`,
		`"description":"Runs a command."`,
		`{"name":"look"}`, `{"name":"bare"}`,
		`"parametersJsonSchema":{"properties":{"n":{"type":["integer","null"]}},"type":"object"}`,
		`"thinkingConfig":{"includeThoughts":true}`,
		`"maxOutputTokens":8192`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}

// parts are what was sent as the n-th content.
func parts(t *testing.T, a llmtest.Asked, n int) []map[string]any {
	t.Helper()
	var in struct {
		Contents []struct{ Parts []map[string]any }
	}
	if err := json.Unmarshal(a.Body, &in); err != nil {
		t.Fatal(err)
	}
	return in.Contents[n].Parts
}

// TestSignatures goes through a chain of calls. The server refuses calls whose
// signature does not come back as it was.
func TestSignatures(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(
		llmtest.Reply{Reasoning: "First I look.", Text: "Looking at both.", Calls: []llm.Call{run("a", `{"command":"ls"}`), run("b", `{}`)}},
		llmtest.Reply{Calls: []llm.Call{run("c", `{}`)}},
		llmtest.Reply{Text: "Known."},
	))
	m := dial(t, s, newer, gemini.Options{Thinks: true})
	history := []llm.Message{said("Look.")}
	step := func(more ...llm.Message) {
		t.Helper()
		history = append(history, more...)
		h, err := hear(t.Context(), m, ask(history...))
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, h.message())
	}
	step()
	step(result("a", "x"), result("b", "y"))
	step(result("c", "z"), said("Hurry."))
	got := parts(t, last(t, s), 1)
	want := base64.StdEncoding.EncodeToString([]byte("signed: run"))
	if len(got) != 3 || got[0]["text"] != "Looking at both." || got[1]["thoughtSignature"] != want || got[2]["thoughtSignature"] != nil {
		t.Errorf("the answer came back as %v", got)
	}
}

// TestTextSignatures is about signatures of texts, of which one comes alone at the end.
func TestTextSignatures(t *testing.T) {
	chunk := func(part string) string {
		return `data: {"candidates":[{"content":{"role":"model","parts":[` + part + `]}}]}` + "\n\n"
	}
	body := chunk(`{"text":"One, "}`) + chunk(`{"text":"two. "}`) + chunk(`{"text":"Three. ","thoughtSignature":"QUFB"}`) +
		chunk(`{"text":"Four."}`) + chunk(`{"text":"","thoughtSignature":"QkJC"}`) +
		`data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"toolUsePromptTokenCount":1,"candidatesTokenCount":2,"thoughtsTokenCount":3}}` + "\n\n"
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Body: body}, llmtest.Reply{Text: "Yes."}))
	m := dial(t, s, newer, gemini.Options{})
	h, err := hear(t.Context(), m, ask(said("Count.")))
	if err != nil {
		t.Fatal(err)
	}
	if h.text != "One, two. Three. Four." || h.done.Usage != (llm.Usage{Input: 8, Output: 5}) {
		t.Errorf("heard %+v", h)
	}
	if _, err := hear(t.Context(), m, ask(said("Count."), h.message(), said("Again."))); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"text": "One, two. "}, {"text": "Three. ", "thoughtSignature": "QUFB"}, {"text": "Four.", "thoughtSignature": "QkJC"},
	}
	if got := parts(t, last(t, s), 1); !reflect.DeepEqual(got, want) {
		t.Errorf("the answer came back as %v, wanted %v", got, want)
	}
}

// TestSignaturesOfOthers is about conversations that change models: what others
// signed is not shown, and calls say that they are not the model's own.
func TestSignaturesOfOthers(t *testing.T) {
	skip := base64.StdEncoding.EncodeToString([]byte("skip_thought_signature_validator"))
	for why, raw := range map[string]string{
		"another provider's": `{"from":"anthropic","blocks":[]}`,
		"another model's":    `{"from":"gemini","model":"gemini-2.5-pro","pieces":[{"text":3,"signature":"QUFB"},{"call":true,"signature":"QUFB"}]}`,
		"of another text":    `{"from":"gemini","model":"gemini-3-pro-preview","pieces":[{"text":9,"signature":"QUFB"},{"call":true,"signature":"QUFB"}]}`,
		"of other calls":     `{"from":"gemini","model":"gemini-3-pro-preview","pieces":[{"text":3,"signature":"QUFB"}]}`,
		"spoilt":             `{"from":"gemini","model":"gemini-3-pro-preview","pieces":[{"text":-1},{"text":4},{"call":true}]}`,
		"not there":          ``,
	} {
		t.Run(why, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "Yes."}))
			history := []llm.Message{
				said("Look."),
				{Role: llm.Assistant, Text: "Hm.", Calls: []llm.Call{run("a", `{}`)}, Raw: json.RawMessage(raw)},
				result("a", "ok"),
			}
			if _, err := hear(t.Context(), dial(t, s, newer, gemini.Options{}), ask(history...)); err != nil {
				t.Fatal(err)
			}
			got := parts(t, last(t, s), 1)
			if len(got) != 2 || got[0]["thoughtSignature"] != nil || got[1]["thoughtSignature"] != skip {
				t.Errorf("the answer came back as %v", got)
			}
			if _, err := hear(t.Context(), dial(t, s, "gemini-2.5-flash", gemini.Options{}), ask(history...)); err != nil {
				t.Fatal(err)
			}
			if got := parts(t, last(t, s), 1); got[1]["thoughtSignature"] != nil {
				t.Errorf("an older model was shown %v", got)
			}
		})
	}
}
