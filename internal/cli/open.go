package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"deckhand/internal/control"
)

// Open is deckhand open.
type Open struct {
	ID string `arg:"" optional:"" help:"Conversation ID; a unique prefix is enough. Default: the newest conversation."`
	RemoteFlags
	Print bool `name:"print" help:"Print the link instead of opening it."`
}

// Help implements kong.HelpProvider.
func (Open) Help() string {
	return `Without a display, the command prints the link. Without conversations, it opens the home page. For a server on this machine's data directory, the link also logs the browser in: it works once, within five minutes.

` + remoteHelp + `

Examples:
  deckhand open
  deckhand open 3f9c2a11 --print`
}

// Run opens the page of a conversation.
func (c *Open) Run(ctx context.Context, o *Output) error {
	r, err := c.Connect()
	if err != nil {
		return err
	}
	link := r.public
	switch found, err := r.find(ctx, c.ID); {
	case err == nil:
		link += "/conversations/" + found.ConversationID
	case errors.Is(err, errNone):
		link += "/"
	default:
		return err
	}
	whole := link
	if r.here {
		if ticket, err := control.Ask(c.DataDir, control.Ticket); err == nil && ticket != "" {
			whole += "#" + ticket
		}
	}
	opener := browserOpener()
	if c.Print || opener == "" {
		_, err := fmt.Fprintln(o.Stdout, whole)
		return err
	}
	cmd := exec.CommandContext(ctx, opener, whole)
	cmd.Stderr = o.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(o.Stderr, "deckhand: cannot open a browser:", err)
		_, err := fmt.Fprintln(o.Stdout, whole)
		return err
	}
	_, err = fmt.Fprintln(o.Stdout, "opened", link)
	return err
}

// browserOpener is the program that opens a link here; "" without a display.
func browserOpener() string {
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return ""
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}
