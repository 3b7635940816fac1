package setup

import (
	"fmt"
	"strings"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	refusals "deckhand/internal/conversation"
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
		return withoutMessage(reason)
	}
	return o
}

// withoutMessage returns the reason why a turn failed, with a next step that needs no further message.
func withoutMessage(reason string) string {
	for _, step := range [][2]string{
		{"or send a message to try again.", "or run the command again."},
		{"Send a message to try again.", "Run the command again."},
		{"then send a message to continue.", "then run the command again."},
		{"Send another message to continue.", "Change the task and run the command again."},
		{"Send a message to continue.", "Run the command again."},
	} {
		if rest, ok := strings.CutSuffix(reason, step[0]); ok {
			return rest + step[1]
		}
	}
	return reason
}

// RefusedModel is cli.Refused for a model of a user, "" if none is chosen, and names the flags that help. variable is the one with the key of the
// model's provider, "" if there is none.
func RefusedModel(r *refusals.Refusal, model, user, variable string) error {
	text := r.Text
	switch r.Code {
	case api.CodeLLMAuthentication:
		if variable != "" {
			variable += " or "
		}
		switch {
		case model == "":
			text = fmt.Sprintf("no model is chosen: use --model (scripted/demo needs no key), set the key of a provider, such as ANTHROPIC_API_KEY, or choose a model in the settings of %s", user)
			return cli.Refused(r, text)
		case !strings.Contains(model, "/"):
			text = fmt.Sprintf("--model %s: write it as provider/model, such as openai/%s; LLM_API_KEY then has its key", model, model)
			return cli.Refused(r, text)
		}
		text = fmt.Sprintf("no key for the model %s: set %sLLM_API_KEY, choose another --model (scripted/demo needs no key), or store a key in the settings of %s", model, variable, user)
	case api.CodePriceUnknown:
		text = fmt.Sprintf("--budget: the price of %s is unknown, so the limit cannot be enforced; set a price under prices in the config file (0 is allowed)", model)
	}
	return cli.Refused(r, text)
}
