package reload

import (
	"errors"
	"fmt"
	"strings"

	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/control"
)

// Command is deckhand config reload.
type Command struct{ config.DataFlags }

// failed is the prefix of a response that reports an error.
const failed = "failed: "

// Run asks the server to reload its configuration and waits until it has.
func (c *Command) Run(o *cli.Output) error { return ask(o, c.DataDir, control.Reload) }

// ask sends a request to the running server and prints its response.
func ask(o *cli.Output, dataDir, request string) error {
	answer, err := control.Ask(dataDir, request)
	if err != nil {
		return fmt.Errorf("%w%s", control.Explain(dataDir, err), config.Packaged.Hint(dataDir))
	}
	if reason, ok := strings.CutPrefix(answer, failed); ok {
		return errors.New(reason)
	}
	_, err = fmt.Fprintln(o.Stdout, answer)
	return err
}

// Answer handles a reload request and returns a response of one line.
func (r *Reloader) Answer() string {
	if r == nil {
		return failed + "this process has no configuration to reload"
	}
	said, err := r.Reload()
	if err != nil {
		return failed + strings.Join(strings.Fields(err.Error()), " ")
	}
	return said
}
