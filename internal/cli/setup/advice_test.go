package setup

import (
	"testing"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/config"
)

// The advice of a run never asks for a message, since the command has ended.
func TestAdviceWithoutMessages(t *testing.T) {
	t.Parallel()
	o := Advised(cli.TalkOptions{}, &config.SettingsFlags{})
	for reason, want := range map[string]string{
		"No connection. Check the base URL, or send a message to try again.": "No connection. Check the base URL, or run the command again.",
		"It failed. Send a message to try again.":                            "It failed. Run the command again.",
		"No credit. Add credit, then send a message to continue.":            "No credit. Add credit, then run the command again.",
		"Refused. Send another message to continue.":                         "Refused. Change the task and run the command again.",
		"Stuck. Send a message to continue.":                                 "Stuck. Run the command again.",
		"Check the model name and the base URL.":                             "Check the model name and the base URL.",
	} {
		if got := o.Advice("STATUS$ERROR", reason); got != want {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

// No flag can be null.
func TestInvalidBudget(t *testing.T) {
	t.Parallel()
	err := Invalid(&api.ValidationError{Detail: []api.FieldError{{Loc: []any{"body", "max_budget_per_task"}, Msg: "Must be 0 or more US dollars, or null for no limit."}}})
	if want := "--budget: Must be 0 or more US dollars."; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
