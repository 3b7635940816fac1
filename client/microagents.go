package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// Microagents lists the microagents of a conversation.
func (c *Client) Microagents(ctx context.Context, id string) ([]api.Microagent, error) {
	out, err := call[api.Microagents](ctx, c, http.MethodGet, item(id)+"/microagents", nil)
	return out.Microagents, err
}

// Commands lists the slash commands of a conversation.
func (c *Client) Commands(ctx context.Context, id string) ([]api.Command, error) {
	out, err := call[api.Commands](ctx, c, http.MethodGet, item(id)+"/commands", nil)
	return out.Commands, err
}

// RunCommand sends the text of a slash command as a message.
func (c *Client) RunCommand(ctx context.Context, id string, b api.RunCommand) error {
	_, err := call[api.Accepted](ctx, c, http.MethodPost, item(id)+"/commands", b)
	return err
}

// Mentions finds files, folders and symbols of the workspace by a part of their name.
func (c *Client) Mentions(ctx context.Context, id, query string) ([]api.Mention, error) {
	out, err := call[api.Mentions](ctx, c, http.MethodGet, item(id)+"/mentions?query="+url.QueryEscape(query), nil)
	return out.Mentions, err
}
