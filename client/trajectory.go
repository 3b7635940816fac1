package client

import (
	"context"
	"io"
	"net/http"

	"deckhand/api"
)

// Trajectory returns the trajectory of a conversation. For a long one, SaveTrajectory
// needs less memory.
func (c *Client) Trajectory(ctx context.Context, id string) (api.Trajectory, error) {
	return call[api.Trajectory](ctx, c, http.MethodGet, item(id)+"/trajectory", nil)
}

// SaveTrajectory streams the trajectory of a conversation to w. After an error, the
// written part is incomplete.
func (c *Client) SaveTrajectory(ctx context.Context, id string, w io.Writer) error {
	return c.save(ctx, item(id)+"/trajectory", w)
}
