// Package scripted is the built-in demo model: a deterministic script instead
// of a language model, so that the whole product can be seen, tested and
// measured without a key. It says what it is in every answer.
package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/llm"
)

// The models of this package.
const (
	Demo = "scripted/demo"
	// Slow gives the same answers one word at a time, for looking at streams and stops.
	Slow = "scripted/slow"
)

// Models lists them, for menus.
var Models = []string{Demo, Slow}

// Model implements llm.Model.
type Model struct {
	// Pause is the time between two words.
	Pause time.Duration
}

// New makes the model with this name, or nil if there is none.
func New(name string) *Model {
	switch strings.ToLower(name) {
	case Demo:
		return &Model{}
	case Slow:
		return &Model{Pause: 100 * time.Millisecond}
	}
	return nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		text, call, on := tour(req)
		if !on {
			text = Answer(req)
			if call = command(req); call != nil {
				text = "I run the command in the sandbox."
			}
		}
		for _, word := range strings.SplitAfter(text, " ") {
			if err := m.wait(ctx); err != nil {
				yield(llm.Part{}, err)
				return
			}
			if !yield(llm.Part{Text: word}, nil) {
				return
			}
		}
		if call != nil && !yield(llm.Part{Call: call}, nil) {
			return
		}
		yield(llm.Part{Done: &llm.Done{Usage: usage(req, text)}}, nil)
	}
}

// command is what a message that begins with a dollar sign asks to have run, so
// that the sandbox can be tried without a language model: "$ make", "$" to wait
// for more of a command that still runs, "$ C-c" for a key, and "> yes" to type
// something into it.
func command(req llm.Request) *llm.Call {
	if !has(req, "execute_bash") {
		return nil
	}
	said, _ := lastSaid(req)
	var commands []string
	input := "false"
	for _, text := range strings.Split(said, "\n$ ") { // what came in together is run together
		text = strings.TrimSpace(strings.TrimPrefix(text, "$ "))
		commands = append(commands, strings.TrimSpace(strings.TrimPrefix(text, "$")))
	}
	text := strings.Join(commands, "\n")
	switch {
	case strings.HasPrefix(said, "> "): // typed into what runs
		text, input = strings.TrimPrefix(said, "> "), "true"
	case !strings.HasPrefix(said, "$ ") && strings.TrimSpace(said) != "$":
		return nil
	case len(text) == 3 && strings.HasPrefix(text, "C-"): // a key
		input = "true"
	}
	args, _ := json.Marshal(map[string]string{"command": text, "is_input": input})
	return &llm.Call{ID: fmt.Sprintf("call_%d", spoken(req)), Name: "execute_bash", Args: args}
}

// spoken counts the messages that are not ours: what the agent is told beside
// them does not change what a call is named.
func spoken(req llm.Request) int {
	n := 0
	for _, m := range req.Messages {
		if !m.Aside {
			n++
		}
	}
	return n
}

func (m *Model) wait(ctx context.Context) error {
	if m.Pause == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(m.Pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Answer is what the script says to a request: a function of it and nothing else.
func Answer(req llm.Request) string {
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == llm.ToolResult {
		return "[scripted demo model] The command printed:\n" + req.Messages[n-1].Text
	}
	said, images := lastSaid(req)
	var b strings.Builder
	fmt.Fprintf(&b, "[scripted demo model] You said: %q.", clip.Runes(said, 200))
	if images > 0 {
		fmt.Fprintf(&b, " You attached %d image(s), which I cannot see.", images)
	}
	b.WriteString(" I am a built-in demo script, not a language model, so I cannot answer that. To see what an agent does, send \"" + Tour + "\"." +
		" To work with a real model, choose one in the settings and enter its API key.")
	return b.String()
}

// lastSaid joins what the person said since the last answer.
func lastSaid(req llm.Request) (text string, images int) {
	var parts []string
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role == llm.User; i-- {
		if req.Messages[i].Aside {
			continue
		}
		parts = append([]string{req.Messages[i].Text}, parts...)
		images += len(req.Messages[i].Images)
	}
	return strings.Join(parts, "\n"), images
}

// usage counts four bytes as a token, as real ones average on text.
func usage(req llm.Request, answer string) llm.Usage {
	n := len(req.System)
	for _, m := range req.Messages {
		n += len(m.Text)
	}
	return llm.Usage{Input: int64(n / 4), Output: int64(len(answer) / 4), Window: 1_000_000}
}
