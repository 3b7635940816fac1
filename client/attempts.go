package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// Attempts lists the attempts of a conversation with their results.
func (c *Client) Attempts(ctx context.Context, id string) (api.Attempts, error) {
	return call[api.Attempts](ctx, c, http.MethodGet, item(id)+"/attempts", nil)
}

// StartAttempts tries a task in several forks of a conversation. With a retryKey, which is optional,
// retrying the request does not start a second set.
func (c *Client) StartAttempts(ctx context.Context, id, retryKey string, in api.StartAttempts) (api.Attempts, error) {
	return send[api.Attempts](ctx, c, http.MethodPost, item(id)+"/attempts", in, retryKey)
}

// KeepAttempt keeps one attempt and deletes the conversations of the other attempts in its set.
func (c *Client) KeepAttempt(ctx context.Context, id, attempt string) (api.KeptAttempt, error) {
	return call[api.KeptAttempt](ctx, c, http.MethodPost, item(id)+"/attempts/"+url.PathEscape(attempt)+"/keep", nil)
}

// TestAttempt runs the test command of an attempt again.
func (c *Client) TestAttempt(ctx context.Context, id, attempt string) (api.Attempts, error) {
	return call[api.Attempts](ctx, c, http.MethodPost, item(id)+"/attempts/"+url.PathEscape(attempt)+"/test", nil)
}
