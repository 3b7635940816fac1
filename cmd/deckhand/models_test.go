package main

import (
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// People set up providers, find models in a few words and decide what the agent may do, in a real browser. The models are
// real HTTP servers in the providers' formats.
func TestModelsInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "nora", "otto", "pola", "quin")
	h.lab.mind("claude-sonnet-4-5-20250929", func(a llmtest.Asked) llmtest.Reply {
		switch {
		case a.Header.Get("X-Api-Key") != "sk-ant-right-canary":
			return llmtest.Reply{Status: 401, Message: "invalid x-api-key"}
		case len(a.Tools) == 1:
			return llmtest.Reply{Calls: []llm.Call{{ID: "c1", Name: "note", Args: []byte(`{"word":"apple"}`)}}}
		}
		return llmtest.Reply{Text: "Ahoy from Anthropic"}
	})
	h.lab.mind("broken", func(llmtest.Asked) llmtest.Reply { return llmtest.Reply{Status: 401, Message: "wrong key"} })
	h.play(t, "models.mjs")
}
