// Package chat is the interactive session of deckhand: a prompt, the live conversation, approvals of
// tool calls, and a status line. It is a client of the API, so it works the same with a server in the same
// process and with another one. On a dumb terminal, it works line by line.
package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/cli/choices"
	"deckhand/internal/cli/custom"
	"deckhand/internal/cli/folder"
)

// Options are what a session needs.
type Options struct {
	choices.Session
	Client *client.Client
	// Folder is the folder of the session. Elsewhere is the URL of a server that outlives this
	// terminal and does not have the folder, or "".
	Folder, Elsewhere string
	// Settings are the flags that were given. They apply to every conversation that this terminal opens.
	Settings choices.Flags
	// Unconfined is true if commands run without a sandbox, and Shared if another terminal's process runs
	// the server.
	Unconfined, Shared bool
	// DataDir is the folder with the prompt history.
	DataDir string
	// OnOpen is called with the ID of each conversation that this terminal opens; may be nil.
	OnOpen func(id string)
}

// patience is the timeout for requests to the server.
const patience = 15 * time.Second

// Run runs the session until the user quits.
func Run(ctx context.Context, o *cli.Output, options Options) error {
	if err := choices.Check(ctx, options.Client, options.Settings, options.Shared); err != nil {
		return err
	}
	s := &conversation{Options: options, prompts: custom.Source{Client: options.Client}}
	if options.Elsewhere == "" {
		s.prompts.Folder = options.Folder
	}
	if err := s.choose(ctx); err != nil {
		return err
	}
	s.status(ctx)
	screen, _ := o.Stdout.(*os.File)
	term := os.Getenv("TERM")
	var err error
	if screen == nil || cli.Columns(screen) == 0 || cli.Columns(os.Stdin) == 0 || term == "dumb" || term == "" {
		err = s.lines(ctx, o, os.Stdin)
	} else {
		err = s.draw(ctx, os.Stdin, screen)
	}
	return errors.Join(err, s.leave(ctx, o))
}

// choose finds the conversation that the flags select. A new one is created with its first message.
func (s *conversation) choose(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case s.ID != "":
		found, err := cli.FindSession(ctx, s.Client, s.ID, "deckhand --resume")
		if err != nil {
			return err
		}
		return s.reopen(ctx, found)
	case !s.Continue && !s.Resume:
		return nil
	}
	all, err := s.sessions(ctx)
	if err != nil {
		return err
	}
	last, ok := folder.Newest(all)
	switch {
	case !ok:
		return cli.Usagef("there is no session %s yet; start one with deckhand", s.where())
	case s.Continue:
		return s.reopen(ctx, last)
	default:
		s.offer = all
	}
	return nil
}

// where returns the folder or server of the sessions.
func (s *conversation) where() string {
	if s.Elsewhere != "" {
		return "on this server"
	}
	return "in this folder"
}

// sessions lists the sessions that can be resumed, newest first.
func (s *conversation) sessions(ctx context.Context) ([]api.Conversation, error) {
	page, err := s.Client.Conversations(ctx, url.Values{"limit": {"50"}})
	return page.Results, cli.Plainly(err)
}

// leave stops the agent if its server ends with this terminal, and prints how to return.
func (s *conversation) leave(ctx context.Context, o *cli.Output) error {
	if s.id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	short := s.id[:min(8, len(s.id))]
	if s.Elsewhere != "" {
		fmt.Fprintf(o.Stderr, "The session %s stays on the server. Return with: deckhand --server %s --resume %s\n", short, s.Elsewhere, short)
		return nil
	}
	fmt.Fprintf(o.Stderr, "Session %s. Continue with: deckhand -c\n", short)
	return cli.Plainly(s.Client.SetState(ctx, s.id, "stopped"))
}

// status reads the model and the approval mode for the status line.
func (s *conversation) status(ctx context.Context) {
	s.hold(choices.Read(ctx, s.Client, s.id, s.Settings, s.Shared))
}

// apply makes a conversation follow the flags. Those that another server would ignore are refused before.
func (s *conversation) apply(ctx context.Context, id string) error {
	if s.Elsewhere != "" {
		return nil
	}
	return choices.Apply(ctx, s.Client, id, s.Settings, s.Shared)
}

// hold shows what is in force, with a notice if it changed.
func (s *conversation) hold(got choices.InForce, err error) {
	if err != nil {
		return
	}
	if notice := got.Changed(s.model, s.mode); notice != "" && s.Display != nil {
		s.Notice(notice)
	}
	s.model, s.mode, s.Window, s.plan = got.Model, got.Mode, cmp.Or(s.Window, got.Window), got.Plan || s.plan && s.id == ""
}

var text = choices.Text

// oneLine returns a title for a list.
func oneLine(c api.Conversation) string {
	if c.Title == "" {
		return "Untitled"
	}
	return strings.Join(strings.Fields(c.Title), " ")
}
