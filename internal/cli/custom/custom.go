// Package custom runs slash commands of a session that need more than one request: commands that send a prompt (built-in,
// the user's own, and from the repository), undo and redo.
package custom

import (
	"context"
	"io/fs"
	"os"
	"slices"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/slash"
)

// Source is the source of a session's commands.
type Source struct {
	Client *client.Client
	// Folder is the folder of the session on this machine, "" for a session on another server.
	Folder string
}

// List lists the commands. id is the conversation, "" before the first message.
func (s Source) List(ctx context.Context, id string) ([]api.Command, error) {
	if s.Folder == "" && id != "" {
		return s.Client.Commands(ctx, id)
	}
	found, err := s.find(ctx)
	out := make([]api.Command, len(found))
	for i, c := range found {
		out[i] = api.Command{Name: c.Name, Description: c.Description, ArgumentHint: c.Hint}
		if c.File != "" {
			out[i].File = &c.File
		}
	}
	return out, err
}

// Expand returns the text that a command sends. sent is true if the server has already sent it.
func (s Source) Expand(ctx context.Context, id, name, arguments, retryKey string) (text string, found, sent bool, err error) {
	all, err := s.List(ctx, id)
	if err != nil || !slices.ContainsFunc(all, func(c api.Command) bool { return c.Name == name }) {
		return "", false, false, err
	}
	if s.Folder == "" && id != "" {
		return "", true, true, s.Client.RunCommand(ctx, id, api.RunCommand{Name: name, Arguments: api.Some(arguments)}, retryKey)
	}
	list, err := s.find(ctx)
	for _, c := range list {
		if c.Name == name {
			return c.Expand(arguments), true, false, nil
		}
	}
	return "", false, false, err
}

// find reads the commands on this machine.
func (s Source) find(ctx context.Context) ([]slash.Command, error) {
	list, err := s.Client.OwnCommands(ctx)
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for _, c := range list {
		own[c.Name] = c.Text
	}
	var repo fs.FS
	if s.Folder != "" {
		root, err := os.OpenRoot(s.Folder) // does not follow links out of the folder
		if err != nil {
			return nil, err
		}
		defer root.Close()
		repo = root.FS()
	}
	return slash.List(ctx, own, repo)
}
