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
