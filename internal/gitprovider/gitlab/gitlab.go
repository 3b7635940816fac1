// Package gitlab is the adapter for version 4 of GitLab's API, at gitlab.com or a
// self-hosted GitLab. A GitLab project is a repository here, and a merge request is a
// pull request.
package gitlab

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

const standard = "gitlab.com"

// host is a GitLab as seen with one token.
type host struct{ *call.Caller }

// New returns the adapter for a GitLab. GitLab accepts personal, group, project and OAuth
// tokens as bearer tokens.
func New(o call.Options) gitprovider.Provider {
	api := func(site *url.URL) *url.URL { return site.JoinPath("api", "v4") }
	return &host{call.New(o, standard, api, func(h http.Header) {
		if o.Token != "" {
			h.Set("Authorization", "Bearer "+o.Token)
		}
	})}
}

func (h *host) User(ctx context.Context) (gitprovider.User, error) {
	var u struct {
		ID           int64
		Username     string
		Name         string
		Email        string
		Organization string
		AvatarURL    string `json:"avatar_url"`
	}
	if _, err := h.Get(ctx, "/user", nil, &u); err != nil {
		return gitprovider.User{}, err
	}
	return gitprovider.User{
		ID: strconv.FormatInt(u.ID, 10), Login: u.Username, Name: u.Name,
		Email: u.Email, Company: u.Organization, AvatarURL: u.AvatarURL,
	}, nil
}

// Installations are not supported by GitLab.
func (h *host) Installations(context.Context) ([]string, error) {
	return nil, h.Fail(gitprovider.Unsupported, "")
}

// project returns the path of a resource of a repository. GitLab expects the whole name
// as one segment.
func project(repository string, below ...string) string {
	return call.Path(append([]string{"projects", repository}, below...)...)
}

// all reads a list in full, up to a number of pages.
func all[T any](ctx context.Context, c *call.Caller, path string, query url.Values, most int) ([]T, error) {
	var items []T
	for page := 1; page != 0 && page <= most; {
		query.Set("page", strconv.Itoa(page))
		query.Set("per_page", "100")
		var some []T
		answer, err := c.Get(ctx, path, query, &some)
		if err != nil {
			return nil, err
		}
		items, page = append(items, some...), answer.NextPage()
	}
	return items, nil
}
