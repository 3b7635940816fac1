package github

import (
	"context"
	"slices"

	"deckhand/internal/gitprovider"
)

// CanPush implements gitprovider.Gatekeeper.
func (g *github) CanPush(ctx context.Context, name, login string) (bool, error) {
	if login == "" {
		path, err := g.repository(name)
		if err != nil {
			return false, err
		}
		var r struct {
			Permissions struct {
				Push bool `json:"push"`
			} `json:"permissions"`
		}
		_, err = g.Get(ctx, path, nil, &r)
		return err == nil && r.Permissions.Push, err
	}
	path, err := g.repository(name, "collaborators", login, "permission")
	if err != nil {
		return false, err
	}
	var r struct {
		Permission string `json:"permission"`
	}
	_, err = g.Get(ctx, path, nil, &r)
	if gitprovider.ReasonOf(err) == gitprovider.NotFound {
		return false, nil
	}
	return slices.Contains([]string{"admin", "maintain", "write"}, r.Permission), err
}
