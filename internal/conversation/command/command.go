// Package command has the use cases for slash commands.
package command

import (
	"context"
	"io/fs"
	"slices"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/slash"
)

// RepositoryFiles opens the repository in a conversation's workspace, without waiting for a sandbox. The files are nil
// if there are none to read. Call close afterwards.
type RepositoryFiles func(ctx context.Context, id session.ID) (files fs.FS, close func(), err error)

// Runner carries out the use cases.
type Runner struct {
	Conversations *conversation.Service
	// Repository opens the files of a conversation's repository; nil if there are none.
	Repository RepositoryFiles
}

// List lists the commands that can be run in a conversation: built-in ones and those of its repository.
func (s *Runner) List(ctx context.Context, user string, id session.ID) ([]slash.Command, error) {
	if _, err := s.Conversations.Row(ctx, user, id); err != nil {
		return nil, err
	}
	var repo fs.FS
	if s.Repository != nil {
		files, done, err := s.Repository(ctx, id)
		if err != nil {
			return nil, err
		}
		defer done()
		repo = files
	}
	return slash.List(ctx, repo)
}

// Run sends the text of a command, with its arguments filled in, as a message. m is that message; its text is
// replaced.
func (s *Runner) Run(ctx context.Context, user string, id session.ID, name, arguments string, m session.UserSaid) (session.State, error) {
	list, err := s.List(ctx, user, id)
	if err != nil {
		return session.State{}, err
	}
	at := slices.IndexFunc(list, func(c slash.Command) bool { return c.Name == name })
	if at < 0 {
		return session.State{}, api.Invalid("value_error", "Unknown command. GET …/commands lists the commands.", "name")
	}
	m.Text = list[at].Expand(arguments)
	return s.Conversations.Say(ctx, user, id, m)
}
