package client

import (
	"context"
	"io"
	"net/http"

	"deckhand/api"
)

// Trajectory returns everything that happened in a conversation. For a long one,
// SaveTrajectory needs less memory.
func (c *Client) Trajectory(ctx context.Context, id string) (api.Trajectory, error) {
	return call[api.Trajectory](ctx, c, http.MethodGet, item(id)+"/trajectory", nil)
}

// SaveTrajectory writes the same to w as it comes. After an error, what was written
// is not a whole trajectory.
func (c *Client) SaveTrajectory(ctx context.Context, id string, w io.Writer) error {
	req, err := c.request(ctx, http.MethodGet, item(id)+"/trajectory", nil)
	if err != nil {
		return err
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return failure(res)
	}
	_, err = io.Copy(w, res.Body)
	return err
}
