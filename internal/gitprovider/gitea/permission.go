package gitea

import (
	"context"
	"slices"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// CanPush implements gitprovider.Gatekeeper.
func (p *provider) CanPush(ctx context.Context, name, login string) (bool, error) {
	if login == "" {
		var r struct {
			Permissions struct {
				Push bool `json:"push"`
			} `json:"permissions"`
		}
		err := p.get(ctx, name, "", nil, &r)
		return err == nil && r.Permissions.Push, err
	}
	var r struct {
		Permission string `json:"permission"`
	}
	err := p.get(ctx, name, call.Path("collaborators", login, "permission"), nil, &r)
	if gitprovider.ReasonOf(err) == gitprovider.NotFound {
		return false, nil
	}
	return slices.Contains([]string{"owner", "admin", "write"}, r.Permission), err
}
