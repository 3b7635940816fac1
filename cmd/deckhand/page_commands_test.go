package main

import (
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// A user's own commands, and /compact, in a real browser.
func TestCommandsInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "tove")
	h.lab.mind("packer", func(a llmtest.Asked) llmtest.Reply {
		if strings.Contains(a.System, "memory of a software agent") {
			return llmtest.Reply{Text: "The anchor is remembered."}
		}
		n := 1
		for _, m := range a.Messages {
			if m.Role == llm.Assistant {
				n++
			}
		}
		return llmtest.Reply{Text: fmt.Sprintf("Answer %d", n)}
	})
	h.play(t, "commands.mjs")
}
