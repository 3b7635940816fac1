package main

import (
	"fmt"
	"io"
)

// output is where a command prints.
type output struct{ stdout, stderr io.Writer }

// The exit codes of run and replay.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitLimit       = 3
	exitRejected    = 4
	exitStuck       = 5
	exitInterrupted = 130
)

const exitHelp = `Exit codes:
0 finished or answered, 1 error (model, sandbox), 2 usage error, 3 limit reached (iterations, budget, time), 4 a tool call was rejected or needed approval, 5 the agent was stuck, 130 interrupted.`

// verdict is an error with a code of its own. One that was said is not printed again.
type verdict struct {
	code int
	why  error
	said bool
}

func (e verdict) Error() string { return e.why.Error() }
func (e verdict) Unwrap() error { return e.why }

// ended ends the program with a code and nothing more to say.
func ended(code int) error {
	if code == exitDone {
		return nil
	}
	return verdict{code: code, said: true, why: fmt.Errorf("exit code %d", code)}
}

func usage(format string, a ...any) error {
	return verdict{code: exitUsage, why: fmt.Errorf(format, a...)}
}
