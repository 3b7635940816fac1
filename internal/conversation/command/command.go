// Package command has the use cases for slash commands.
package command

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/settings"
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
	// Compactable reports whether the history of a conversation can be replaced with a summary; nil if this is not known.
	Compactable func(ctx context.Context, st session.State) (bool, error)
}

// List lists the commands that can be run in a conversation: built-in ones, the user's own and those of its repository.
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
	own, err := s.Own(ctx, user)
	if err != nil {
		return nil, err
	}
	return slash.List(ctx, own, repo)
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

// Compact asks the agent to replace the history with a summary. It refuses if there is nothing to summarise.
func (s *Runner) Compact(ctx context.Context, user string, id session.ID, instructions string) error {
	if _, err := s.Conversations.Row(ctx, user, id); err != nil {
		return err
	}
	st, err := s.Conversations.Sessions.Load(ctx, id)
	if err != nil {
		return err
	}
	if s.Compactable != nil && st.Compact == nil {
		ok, err := s.Compactable(ctx, st)
		if err != nil {
			return err
		}
		if !ok {
			return &conversation.Refusal{Kind: conversation.Conflict, Code: api.CodeConversationRefused, Text: "There is nothing to compact yet: the history is short, or was just compacted."}
		}
	}
	_, err = s.Conversations.Compact(ctx, user, id, strings.TrimSpace(instructions))
	return err
}

// Own returns the texts of the user's own commands by name.
func (s *Runner) Own(ctx context.Context, user string) (map[string]string, error) {
	var own map[string]string
	err := s.Conversations.Settings.Read(ctx, user, func(stored *settings.Settings) { own = maps.Clone(stored.Commands) })
	if errors.Is(err, settings.ErrNotFound) {
		err = nil
	}
	return own, err
}

// maxOwn and maxOwnBytes are the maximum number and total size of a user's own commands.
const (
	maxOwn      = 100
	maxOwnBytes = 512 << 10
)

// SetOwn stores one of the user's own commands. It fails with a *api.ValidationError.
func (s *Runner) SetOwn(ctx context.Context, user, name, text string) error {
	switch {
	case !slash.ValidName(name):
		return api.Invalid("value_error", "Use 1 to 64 letters, digits and . _ -, starting with a letter or a digit.", "name")
	case slash.Reserved(strings.ToLower(name)):
		return api.Invalid("value_error", "This is the name of a built-in command. Choose another name.", "name")
	case slash.Parse(name, text).Text == "":
		return api.Invalid("missing", "Enter the text that the command sends.", "text")
	case len(text) > slash.MaxText:
		return api.Invalid("string_too_long", "Must not be larger than 64 KiB.", "text")
	}
	return s.Conversations.Settings.Change(ctx, user, func(stored *settings.Settings) error {
		for has := range stored.Commands {
			if has != name && strings.EqualFold(has, name) {
				return api.Invalid("value_error", "You already have the command /"+has+". Names must differ in more than case.", "name")
			}
		}
		if stored.Commands == nil {
			stored.Commands = map[string]string{}
		}
		stored.Commands[name] = text
		size := 0
		for _, text := range stored.Commands {
			size += len(text)
		}
		if len(stored.Commands) > maxOwn || size > maxOwnBytes {
			return api.Invalid("too_long", "Too many commands: the limit is 100 commands and 512 KiB of text. Delete some.", "name")
		}
		return nil
	})
}

// DeleteOwn deletes one of the user's own commands. It does nothing if there is no such command.
func (s *Runner) DeleteOwn(ctx context.Context, user, name string) error {
	own, err := s.Own(ctx, user)
	if _, found := own[name]; err != nil || !found {
		return err
	}
	return s.Conversations.Settings.Change(ctx, user, func(stored *settings.Settings) error {
		delete(stored.Commands, name)
		return nil
	})
}
