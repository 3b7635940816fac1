package cli

import (
	"fmt"
	"io"

	"deckhand/api"
	"deckhand/internal/conversation"
)

// Output is where a command prints.
type Output struct {
	Stdout, Stderr io.Writer
	// Answer is where the final answer is printed, if all else goes to another place.
	Answer io.Writer
}

// The exit codes of run and replay.
const (
	ExitDone        = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitLimit       = 3
	ExitRejected    = 4
	ExitStuck       = 5
	ExitSchema      = 6
	ExitInterrupted = 130
)

// ExitHelp explains the exit codes.
const ExitHelp = `Exit codes:
0 finished or answered, 1 error (model, sandbox), 2 usage error, 3 limit reached (iterations, budget, time), 4 a tool call was rejected or needed approval, 5 the agent was stuck, 6 the final answer does not match --output-schema, 130 interrupted.`

// CodeError is an error with a code of its own. One that was said is not printed again.
type CodeError struct {
	Code int
	Err  error
	Said bool
}

func (e CodeError) Error() string { return e.Err.Error() }
func (e CodeError) Unwrap() error { return e.Err }

// Exit ends the program with a code and nothing more to say.
func Exit(code int) error {
	if code == ExitDone {
		return nil
	}
	return CodeError{Code: code, Said: true, Err: fmt.Errorf("exit code %d", code)}
}

// Usagef is the error of a command that was called wrongly.
func Usagef(format string, a ...any) error {
	return CodeError{Code: ExitUsage, Err: fmt.Errorf(format, a...)}
}

// refusedError has words of its own for a refusal: they name flags.
type refusedError struct {
	text    string
	refusal *conversation.Refusal
}

func (e *refusedError) Error() string { return e.text }
func (e *refusedError) Unwrap() error { return e.refusal }

// Refused is the error of a command that the use cases refuse.
func Refused(r *conversation.Refusal, text string) error {
	return CodeError{Code: ExitUsage, Err: &refusedError{text, r}}
}

// RefusedModel is Refused for a model of a user, and names the flags that help. variable is the one with the key of the
// model's provider, "" if there is none.
func RefusedModel(r *conversation.Refusal, model, user, variable string) error {
	text := r.Text
	switch r.Code {
	case api.CodeLLMAuthentication:
		if variable != "" {
			variable += " or "
		}
		text = fmt.Sprintf("no key for the model %s: set %sLLM_API_KEY, choose another --model (scripted/demo needs no key), or store a key in the settings of %s", model, variable, user)
	case api.CodePriceUnknown:
		text = fmt.Sprintf("--budget: the price of %s is unknown, so the limit cannot be enforced; set a price under prices in the config file (0 is allowed)", model)
	}
	return Refused(r, text)
}
