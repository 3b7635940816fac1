package conversations

import (
	"context"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const aboutCommands = "Commands are prompts with a name: built-in ones, and Markdown files in .deckhand/commands and .claude/commands of the repository. In their text, $ARGUMENTS stands for all arguments and $1 to $9 for single ones. " +
	"Does not start the sandbox; until the workspace exists, the repository's commands are missing."

func (d *Handlers) listCommands(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Commands, error) {
	found, err := d.Commands.List(ctx, c.Who.User, session.ID(p.ID))
	if err != nil {
		return api.Commands{}, err
	}
	out := api.Commands{Commands: make([]api.Command, len(found))}
	for i, one := range found {
		out.Commands[i] = api.Command{Name: one.Name, Description: one.Description, ArgumentHint: one.Hint, File: rest.OrNull(one.File)}
	}
	return out, nil
}

func (d *Handlers) runCommand(ctx context.Context, c *rest.Call, p rest.InConversation, b api.RunCommand) (api.Accepted, error) {
	m := session.UserSaid{Images: b.ImageURLs.Value, Files: b.FileURLs.Value, Key: c.RetryKey}
	_, err := d.Commands.Run(ctx, c.Who.User, session.ID(p.ID), b.Name, b.Arguments.Value, m)
	return accepted(err)
}
