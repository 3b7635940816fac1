package scripted

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"deckhand/internal/llm"
)

func request(said ...string) llm.Request {
	var r llm.Request
	for _, s := range said {
		r.Messages = append(r.Messages, llm.Message{Role: llm.User, Text: s})
	}
	return r
}

// The same request gets the same answer, in pieces that make the whole, labelled as a script.
func TestStream(t *testing.T) {
	for _, name := range Models {
		m := New(name)
		m.Pause = 0
		var text strings.Builder
		var done *llm.Done
		for part, err := range m.Stream(t.Context(), request("hello", "there")) {
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(part.Text)
			done = part.Done
		}
		if got := text.String(); got != Answer(request("hello", "there")) || !strings.HasPrefix(got, "[scripted demo model]") || !strings.Contains(got, `hello\nthere`) {
			t.Errorf("%s", got)
		}
		if done == nil || done.Usage.Output == 0 {
			t.Errorf("%s does not say what it used", name)
		}
	}
	if New("scripted/other") != nil || New("Scripted/DEMO") == nil {
		t.Error("names")
	}
}

// A message may be a command, more of them, a key, input, or a wish to wait.
func TestCommand(t *testing.T) {
	for said, want := range map[string]string{
		"$ make test": `{"command":"make test","is_input":"false"}`, "$": `{"command":"","is_input":"false"}`, "$ ": `{"command":"","is_input":"false"}`,
		"$ C-c": `{"command":"C-c","is_input":"true"}`, "> yes": `{"command":"yes","is_input":"true"}`,
		"$ one\n$ two": `{"command":"one\ntwo","is_input":"false"}`, "hello": "", "costs $ 5": "",
	} {
		r := request(said)
		r.Tools = []llm.Tool{{Name: "execute_bash"}}
		got := ""
		if c := command(r); c != nil {
			got = string(c.Args)
		}
		if got != want {
			t.Errorf("%q is %s, wanted %s", said, got, want)
		}
	}
	if command(request("$ x")) != nil {
		t.Error("a tool was called that is not there")
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &Model{Pause: time.Hour}
	cancel()
	for _, err := range m.Stream(ctx, request("x")) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}
