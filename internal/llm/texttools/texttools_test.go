package texttools

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tools = []llm.Tool{
	{Name: "edit", Description: "Changes a file.", Schema: json.RawMessage(`{"type":"object","required":["path"],"properties":{
		"path":{"type":"string","description":"Which file."},
		"text":{"type":"string"},
		"line":{"type":"integer"},
		"range":{"type":"array","items":{"type":"integer"}},
		"force":{"type":["boolean","null"]},
		"mode":{"enum":["soft","hard"]},
		"note":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`)},
	{Name: "ls"},
}

// reach makes a wrapped model that a server answers for.
func reach(t *testing.T, answer func(llmtest.Asked) llmtest.Reply) (*llmtest.Server, llm.Model) {
	s := llmtest.New(t, answer)
	c := s.Config(llmtest.Chat, "m")
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	c.Client = &http.Client{Transport: tr}
	return s, Wrap(openai.Chat(c, "m", openai.Options{Compatible: true}))
}

type heard struct {
	text  string
	calls []llm.Call
	done  *llm.Done
	err   error
}

func listen(ctx context.Context, m llm.Model, req llm.Request) (h heard) {
	for p, err := range m.Stream(ctx, req) {
		h.err = err
		h.text += p.Text
		if p.Call != nil {
			h.calls = append(h.calls, *p.Call)
		}
		if p.Done != nil {
			h.done = p.Done
		}
	}
	return h
}

func hello() llm.Request {
	return llm.Request{System: "Be brief.", Tools: tools, Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}
}

func TestCalls(t *testing.T) {
	for _, c := range []struct {
		name, said string
		text       string
		calls      []string // name and arguments
	}{
		{"none", "just a text\n", "just a text\n", nil},
		{"blanks alone", " \n", " \n", nil},
		{"one", "I look.\n\n<call tool=\"ls\">\n</call>\n", "I look.", []string{`ls {}`}},
		{"values", "<call tool=\"edit\">\n<arg name=\"path\">a b</arg>\n<arg name=\"line\"> 7 </arg><arg name=\"range\">[1, 2]</arg>\n<arg name=\"force\">True</arg>\n</call>", "",
			[]string{`edit {"force":true,"line":7,"path":"a b","range":[1,2]}`}},
		{"text where text is allowed", `<call tool="edit"><arg name="path">7</arg><arg name="mode">true</arg><arg name="note">null</arg><arg name="other">1</arg></call>`, "",
			[]string{`edit {"mode":"true","note":"null","other":"1","path":"7"}`}},
		{"text where none is allowed", `<call tool="edit"><arg name="line">the last one</arg></call>`, "", []string{`edit {"line":"the last one"}`}},
		{"several lines", "<call tool=\"edit\">\n<arg name=\"text\">\n  if a < b && c > d {\n\t\"quoted\"\n  }\n\n</arg>\n</call>", "",
			[]string{`edit {"text":"  if a \u003c b \u0026\u0026 c \u003e d {\n\t\"quoted\"\n  }\n"}`}},
		{"tags in a value", "<call tool=\"edit\"><arg name=\"text\">x </arg> y </call> <call tool=z> <result tool=z></arg>\n</call>", "",
			[]string{`edit {"text":"x \u003c/arg\u003e y \u003c/call\u003e \u003ccall tool=z\u003e \u003cresult tool=z\u003e"}`}},
		{"two", "First.\n<call tool=\"ls\"></call>\n\n<call tool='edit'><arg name='path'>x</arg></call>", "First.", []string{`ls {}`, `edit {"path":"x"}`}},
		{"a text between", "A <call tool=\"ls\"></call> B <call tool=\"ls\"></call>", "A B", []string{`ls {}`, `ls {}`}},
		{"JSON", `<call tool="edit">{"path": "x", "line": 12345678901234567890}</call>`, "", []string{`edit {"line":12345678901234567890,"path":"x"}`}},
		{"not closed", "<call tool=\"edit\">\n<arg name=\"path\">x</arg>\n", "", []string{`edit {"path":"x"}`}},
		{"a made-up result", "<call tool=\"ls\"></call>\n<result tool=\"ls\">\nsecrets.txt\n</result>\nI see <call tool=\"ls\"></call>", "", []string{`ls {}`}},
		{"a text that only looks like it", "use <call> or <call tool or <results>, a <b", "use <call> or <call tool or <results>, a <b", nil},
		{"a tag that never ends", "see <call tool=", "see <call tool=", nil},
		{"no name", "<call tool=\"\"></call>", "", []string{`unnamed {}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 1000} {
				_, m := reach(t, llmtest.Script(llmtest.Reply{Text: c.said, Fragment: size}))
				h := listen(t.Context(), m, hello())
				if h.err != nil || h.done == nil || h.done.Usage.Input == 0 {
					t.Fatalf("got %+v", h)
				}
				var calls []string
				ids := map[string]bool{"": true}
				for _, call := range h.calls {
					calls = append(calls, call.Name+" "+string(call.Args))
					if ids[call.ID] {
						t.Errorf("the id %q is not a call's own", call.ID)
					}
					ids[call.ID] = true
				}
				if h.text != c.text || !reflect.DeepEqual(calls, c.calls) {
					t.Errorf("in pieces of %d: got %q, %q", size, h.text, calls)
				}
			}
		})
	}
}

func TestWhatCannotBeReadIsExplained(t *testing.T) {
	for said, why := range map[string]string{
		`<call tool="edit"><arg name="path">x`:                 `the argument "path" is not closed`,
		`<call tool="edit"><arg path>x</arg></call>`:           "an argument has no name",
		`<call tool="edit"><arg name="">x</arg></call>`:        "an argument has no name",
		`<call tool="edit">path: x</call>`:                     `"path: x" stands where an argument`,
		`<call tool="edit">{"path": x}</call>`:                 "not JSON",
		`<call tool="edit"><arg name="path">x</arg> y </call>`: "is not closed",
	} {
		_, m := reach(t, llmtest.Script(llmtest.Reply{Text: said}))
		h := listen(t.Context(), m, hello())
		if h.err != nil || len(h.calls) != 1 || h.calls[0].Name != "edit" || h.text != "" {
			t.Errorf("%s: got %+v", said, h)
			continue
		}
		var got string
		if err := json.Unmarshal(h.calls[0].Args, &got); err != nil || !strings.Contains(got, why) || !strings.Contains(got, said) {
			t.Errorf("%s: got arguments %s", said, h.calls[0].Args)
		}
	}
}

func TestTextStreams(t *testing.T) {
	s, m := reach(t, llmtest.Script(llmtest.Reply{Text: "Streaming text before a <call tool=\"ls\"></call>", Break: llmtest.Hang, Fragment: 4}))
	for p, err := range m.Stream(t.Context(), hello()) {
		if err != nil || p.Text == "" {
			t.Fatalf("got %+v, %v before the answer ended", p, err)
		}
		break
	}
	<-s.Asked()[0].Gone
}

func TestFailurePassesThrough(t *testing.T) {
	_, m := reach(t, llmtest.Script(llmtest.Reply{Status: 401}))
	var e *llm.Error
	if h := listen(t.Context(), m, hello()); !errors.As(h.err, &e) || e.Class != llm.ClassAuth {
		t.Errorf("got %+v", h)
	}
}

func TestRequest(t *testing.T) {
	s, m := reach(t, llmtest.Script(llmtest.Reply{Text: "ok"}))
	req := hello()
	req.Messages = []llm.Message{
		{Role: llm.User, Text: "look"},
		{Role: llm.Assistant, Text: "I look.", Calls: []llm.Call{
			{ID: "1", Name: "edit", Args: json.RawMessage(`{"path":"x","text":"a\nb","line":3}`)},
			{ID: "2", Name: "ls", Args: json.RawMessage(`"what it wrote"`)},
		}},
		{Role: llm.ToolResult, Call: "1", Name: "edit", Text: "done", Images: []string{"data:image/png;base64,AA=="}},
		{Role: llm.ToolResult, Call: "2", Name: "ls", Text: "bad", Failed: true},
		{Role: llm.User, Text: "go on"},
		{Role: llm.Assistant},
		{Role: llm.Assistant, Calls: []llm.Call{{ID: "1", Name: "ls", Args: json.RawMessage(`{}`)}}},
		{Role: llm.ToolResult, Call: "1", Name: "ls", Text: "x"},
	}
	if h := listen(t.Context(), m, req); h.err != nil {
		t.Fatalf("got %v; complaints %q", h.err, s.Complaints())
	}
	want := []llm.Message{
		{Role: llm.User, Text: "look"},
		{Role: llm.Assistant, Text: "I look.\n\n<call tool=\"edit\">\n<arg name=\"line\">3</arg>\n<arg name=\"path\">x</arg>\n<arg name=\"text\">\na\nb\n</arg>\n</call>\n\n<call tool=\"ls\">\nwhat it wrote\n</call>"},
		{Role: llm.User, Text: "<result tool=\"edit\" call=\"1\">\ndone\n</result>\n\n<result tool=\"ls\" call=\"2\" failed=\"yes\">\nbad\n</result>\n\ngo on", Images: []string{"data:image/png;base64,AA=="}},
		{Role: llm.Assistant, Text: "<call tool=\"ls\">\n</call>"},
		{Role: llm.User, Text: "<result tool=\"ls\">\nx\n</result>"},
	}
	a := s.Asked()[0]
	if !reflect.DeepEqual(a.Messages, want) {
		t.Errorf("got  %+v\nwant %+v", a.Messages, want)
	}
	if len(a.Tools) != 0 || !strings.Contains(string(a.Body), `"stop":["<result tool="]`) && !strings.Contains(string(a.Body), `"stop":["\u003cresult tool="]`) {
		t.Errorf("got %s", a.Body)
	}
	for _, part := range []string{
		"Be brief.\n\n# Tools", `<call tool="run">`, "## edit\nChanges a file.\nArguments:\n- path (string, required): Which file.\n- force (boolean or null)\n",
		"- mode (string) One of: soft, hard\n", `- range (array) JSON of this schema: {"type":"array","items":{"type":"integer"}}`, "## ls\nArguments: none\n",
	} {
		if !strings.Contains(a.System, part) {
			t.Errorf("the prompt has no %q:\n%s", part, a.System)
		}
	}
}

func TestWithoutTools(t *testing.T) {
	s, m := reach(t, llmtest.Script(llmtest.Reply{Text: `<call tool="ls"></call>`}))
	req := hello()
	req.Tools = nil
	h := listen(t.Context(), m, req)
	if h.text != `<call tool="ls"></call>` || len(h.calls) != 0 || s.Asked()[0].System != "Be brief." {
		t.Errorf("got %+v", h)
	}
}

// parse gives the texts and the calls of an answer that comes in these pieces.
func parse(pieces ...string) (text string, calls []string) {
	var p parser
	var all []found
	for _, s := range pieces {
		all = append(all, p.feed(s)...)
	}
	for _, f := range append(all, p.end()...) {
		if f.call {
			calls = append(calls, f.text)
		} else {
			text += f.text
		}
	}
	return text, calls
}

func FuzzParse(f *testing.F) {
	f.Add("I look.\n<call tool=\"edit\"><arg name=\"path\">x</arg></call> and\n<call tool=\"ls\">", 3, 20)
	f.Add("<call tool=><arg name=></arg></call></call>", 1, 2)
	f.Add("a <result tool=x> b", 4, 9)
	f.Add("<call tool=\"edit\">{\"line\":1}</call>\xff", 5, 5)
	known := schemas(tools)
	f.Fuzz(func(t *testing.T, said string, i, j int) {
		i, j = min(max(i, 0), len(said)), min(max(j, 0), len(said))
		if i > j {
			i, j = j, i
		}
		text, calls := parse(said)
		cutText, cutCalls := parse(said[:i], said[i:j], said[j:])
		if text != cutText || !reflect.DeepEqual(calls, cutCalls) {
			t.Errorf("whole: %q, %q; in pieces: %q, %q", text, calls, cutText, cutCalls)
		}
		for _, c := range calls {
			call := found{text: c, call: true}.read(known)
			if call.Name == "" || !json.Valid(call.Args) {
				t.Errorf("%q became %+v", c, call)
			}
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("some\ntext\n", "a/b")
	f.Add("", " x ")
	f.Add("\n", "\n\n")
	f.Fuzz(func(t *testing.T, text, path string) {
		args, err := json.Marshal(map[string]string{"path": path, "text": text})
		if err != nil || strings.Contains(text+path, "<") || strings.Contains(string(args), `\ufffd`) {
			t.Skip()
		}
		var b strings.Builder
		writeCall(&b, llm.Call{Name: "edit", Args: args})
		_, calls := parse(b.String())
		if len(calls) != 1 {
			t.Fatalf("got %q", calls)
		}
		if got := (found{text: calls[0], call: true}).read(schemas(tools)); string(got.Args) != string(args) {
			t.Errorf("got %s, want %s", got.Args, args)
		}
	})
}
