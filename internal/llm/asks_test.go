package llm_test

import (
	"testing"

	"deckhand/internal/llm"
)

func TestAsks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Which port should it use?":                              true,
		"I can do two things:\n\n- **Should I use Postgres?**\n": true,
		"ポートはどれにしますか？":                                           true,
		"Is it done? Yes.\n\nAll tests pass.":                    false,
		"The script:\n\n```\ntest -e a?\n```":                    false,
		"":                                                       false,
	} {
		if got := llm.Asks(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
