package setup

import (
	"strings"

	"deckhand/internal/cli"
	"deckhand/internal/config"
)

// Advised makes a run explain its errors in terms of its flags and variables: it has no settings page, and ends with the turn.
func Advised(o cli.TalkOptions, f *config.SettingsFlags) cli.TalkOptions {
	variable := f.KeySource()
	o.Advice = func(id, reason string) string {
		was, now := "", ""
		switch id {
		case "STATUS$ERROR_LLM_AUTHENTICATION":
			was, now = "Store another key, then send a message to continue.", "Set "+variable+" to a valid key and run the command again."
			if variable == "" {
				now = "Store another key in the settings, or set LLM_API_KEY, and run the command again."
			}
		case "STATUS$ERROR_MAX_ITERATIONS":
			was, now = "Send a message to continue.", "Use a higher --max-iterations to allow more."
		case "STATUS$ERROR_BUDGET":
			was, now = "Raise the budget and send a message to continue.", "Use a higher --budget to allow more."
		}
		if rest, ok := strings.CutSuffix(reason, was); ok && was != "" {
			return rest + now
		}
		return reason
	}
	return o
}
