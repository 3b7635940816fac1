package cli

import (
	"fmt"
	"io"

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
