package conversations

import (
	"context"
	"maps"
	"slices"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const aboutCommands = "Commands are prompts with a name: built-in ones, your own, and Markdown files in .deckhand/commands and .claude/commands of the repository. In their text, $ARGUMENTS is replaced with all arguments, and $1 to $9 with single arguments. " +
	"Does not start the sandbox; until the workspace exists, the repository's commands are not available. A file with the same name as a built-in command or one of your own commands is listed as repo:NAME."

const (
	aboutCompact = "The agent compacts the history when no step is in progress, also between turns. A stopped conversation is started. Recorded as compact_asked, followed by condensed, or by noted if the summary failed. " +
		"Returns 409 if there is nothing to summarise."
	aboutOwnCommands = "Your own slash commands are available in all your conversations. Their text has the same format as command files."
)

func (d *Handlers) listCommands(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Commands, error) {
	found, err := d.Commands.List(ctx, c.Who.User, session.ID(p.ID))
	if err != nil {
		return api.Commands{}, err
	}
	out := api.Commands{Commands: make([]api.Command, len(found))}
	for i, one := range found {
		out.Commands[i] = api.Command{Name: one.Name, Description: one.Description, ArgumentHint: one.Hint, Source: "builtin", File: rest.OrNull(one.File)}
		switch {
		case one.Own:
			out.Commands[i].Source = "settings"
		case one.File != "":
			out.Commands[i].Source = "repository"
		}
	}
	return out, nil
}

func (d *Handlers) runCommand(ctx context.Context, c *rest.Call, p rest.InConversation, b api.RunCommand) (api.Accepted, error) {
	m := session.UserSaid{Images: b.ImageURLs.Value, Files: b.FileURLs.Value, Key: c.RetryKey}
	_, err := d.Commands.Run(ctx, c.Who.User, session.ID(p.ID), b.Name, b.Arguments.Value, m)
	return accepted(err)
}

func (d *Handlers) compact(ctx context.Context, c *rest.Call, p rest.InConversation, b api.Compact) (api.Accepted, error) {
	return accepted(d.Commands.Compact(ctx, c.Who.User, session.ID(p.ID), b.Instructions.Value))
}

// inCommand is the path parameter with the name of a command.
type inCommand struct {
	Name string `path:"name" maxLength:"64" doc:"Name of the command, without the slash."`
}

func (d *Handlers) listOwnCommands(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.OwnCommands, error) {
	out := api.OwnCommands{Commands: []api.OwnCommand{}}
	own, err := d.Commands.Own(ctx, c.Who.User)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		out.Commands = append(out.Commands, api.OwnCommand{Name: name, Text: own[name]})
	}
	return out, err
}

func (d *Handlers) setOwnCommand(ctx context.Context, c *rest.Call, in inCommand, b api.SetOwnCommand) (api.OwnCommands, error) {
	if err := d.Commands.SetOwn(ctx, c.Who.User, in.Name, b.Text); err != nil {
		return api.OwnCommands{}, err
	}
	return d.listOwnCommands(ctx, c, rest.None{}, rest.None{})
}

func (d *Handlers) deleteOwnCommand(ctx context.Context, c *rest.Call, in inCommand, _ rest.None) (api.OwnCommands, error) {
	if err := d.Commands.DeleteOwn(ctx, c.Who.User, in.Name); err != nil {
		return api.OwnCommands{}, err
	}
	return d.listOwnCommands(ctx, c, rest.None{}, rest.None{})
}
