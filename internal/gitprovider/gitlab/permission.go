package gitlab

import (
	"context"
	"net/url"
	"strings"
)

// developer is the lowest access level that may push.
const developer = 30

// CanPush implements gitprovider.Gatekeeper.
func (h *host) CanPush(ctx context.Context, name, login string) (bool, error) {
	type level struct {
		Access int `json:"access_level"`
	}
	if login == "" {
		var p struct {
			Permissions struct {
				Project *level `json:"project_access"`
				Group   *level `json:"group_access"`
			}
		}
		if _, err := h.Get(ctx, project(name), nil, &p); err != nil {
			return false, err
		}
		own, group := p.Permissions.Project, p.Permissions.Group
		return own != nil && own.Access >= developer || group != nil && group.Access >= developer, nil
	}
	var members []struct {
		level
		Username string
	}
	if _, err := h.Get(ctx, project(name, "members", "all"), url.Values{"query": {login}, "per_page": {"100"}}, &members); err != nil {
		return false, err
	}
	for _, m := range members {
		if strings.EqualFold(m.Username, login) && m.Access >= developer {
			return true, nil
		}
	}
	return false, nil
}
