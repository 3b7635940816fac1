package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api/health"
)

// ServerHealth returns the health of the server. It needs an admin key, as do EndSandbox and SetLogLevel.
func (c *Client) ServerHealth(ctx context.Context) (health.ServerHealth, error) {
	return call[health.ServerHealth](ctx, c, http.MethodGet, "/api/admin/health", nil)
}

// EndSandbox stops a conversation of any user and ends its sandbox. The workspace is kept.
func (c *Client) EndSandbox(ctx context.Context, conversation string) error {
	_, err := call[health.EndedSandbox](ctx, c, http.MethodPost, "/api/admin/sandboxes/"+url.PathEscape(conversation)+"/end", nil)
	return err
}

// SetLogLevel sets the log level of the server until it is restarted or reloads its configuration.
func (c *Client) SetLogLevel(ctx context.Context, level string) error {
	_, err := call[health.LogLevel](ctx, c, http.MethodPut, "/api/admin/log-level", health.LogLevel{Level: level})
	return err
}
