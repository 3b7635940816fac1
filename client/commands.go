package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// Commands lists the slash commands of a conversation.
func (c *Client) Commands(ctx context.Context, id string) ([]api.Command, error) {
	out, err := call[api.Commands](ctx, c, http.MethodGet, item(id)+"/commands", nil)
	return out.Commands, err
}

// RunCommand sends the text of a slash command as a message. With a retryKey, which is optional, sending it again has no effect.
func (c *Client) RunCommand(ctx context.Context, id string, b api.RunCommand, retryKey string) error {
	_, err := send[api.Accepted](ctx, c, http.MethodPost, item(id)+"/commands", b, retryKey)
	return err
}

// Compact asks the agent to replace the history with a summary as soon as no step is in progress. instructions may be empty.
func (c *Client) Compact(ctx context.Context, id, instructions string) error {
	in := api.Compact{}
	if instructions != "" {
		in.Instructions = api.Some(instructions)
	}
	_, err := call[api.Accepted](ctx, c, http.MethodPost, item(id)+"/compact", in)
	return err
}

// OwnCommands lists the user's own slash commands.
func (c *Client) OwnCommands(ctx context.Context) ([]api.OwnCommand, error) {
	out, err := call[api.OwnCommands](ctx, c, http.MethodGet, "/api/commands", nil)
	return out.Commands, err
}

// SetOwnCommand stores one of the user's own slash commands.
func (c *Client) SetOwnCommand(ctx context.Context, name, text string) error {
	_, err := call[api.OwnCommands](ctx, c, http.MethodPut, "/api/commands/"+url.PathEscape(name), api.SetOwnCommand{Text: text})
	return err
}

// DeleteOwnCommand deletes one of the user's own slash commands.
func (c *Client) DeleteOwnCommand(ctx context.Context, name string) error {
	_, err := call[api.OwnCommands](ctx, c, http.MethodDelete, "/api/commands/"+url.PathEscape(name), nil)
	return err
}

// Mentions finds files, folders and symbols in the workspace whose name contains a text.
func (c *Client) Mentions(ctx context.Context, id, query string) ([]api.Mention, error) {
	out, err := call[api.Mentions](ctx, c, http.MethodGet, item(id)+"/mentions?query="+url.QueryEscape(query), nil)
	return out.Mentions, err
}
