// Package github is the adapter for github.com, GitHub Enterprise Cloud and GitHub
// Enterprise Server. It uses REST, and GraphQL for tasks and branch searches, which would
// take many REST requests.
package github

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// Host is the public host.
const Host = "github.com"

// maxPages limits lists that the port does not page.
const maxPages = 10

type github struct {
	*call.Caller
	token   string
	graphql *url.URL
}

var _ gitprovider.Provider = (*github)(nil)

// New returns a provider that uses a token, or anonymous requests without one.
func New(o call.Options) gitprovider.Provider {
	if o.Name == "" {
		o.Name = "github"
	}
	if site, err := o.Site(Host); err == nil && (site.Host == "www."+Host || site.Host == "api."+Host) {
		o.Host = Host
	}
	g := &github{token: o.Token}
	g.Caller = call.New(o, Host, func(site *url.URL) *url.URL {
		var rest *url.URL
		rest, g.graphql = addresses(site)
		return rest
	}, g.authorize)
	return g
}

// addresses returns the base URLs of both APIs.
func addresses(site *url.URL) (rest, graphql *url.URL) {
	// In the cloud, both APIs have their own host, also for an enterprise.
	if site.Host == Host || strings.HasSuffix(site.Host, ".ghe.com") {
		api := &url.URL{Scheme: site.Scheme, Host: "api." + site.Host}
		return api, api
	}
	return site.JoinPath("api", "v3"), site.JoinPath("api")
}

func (g *github) authorize(h http.Header) {
	h.Set("Accept", "application/vnd.github+json")
	h.Set("X-GitHub-Api-Version", "2022-11-28")
	if g.token != "" {
		h.Set("Authorization", "Bearer "+g.token)
	}
}

// repository returns the path of a repository. Invalid names are rejected.
func (g *github) repository(name string, rest ...string) (string, error) {
	owner, short, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(short, "/") || !gitprovider.ValidRepository(name) {
		return "", g.Fail(gitprovider.NotFound, "")
	}
	return call.Path(append([]string{"repos", owner, short}, rest...)...), nil
}

func (g *github) User(ctx context.Context) (gitprovider.User, error) {
	var u struct {
		ID        int64  `json:"id"`
		Login     string `json:"login"`
		AvatarURL string `json:"avatar_url"`
		Company   string `json:"company"`
		Name      string `json:"name"`
		Email     string `json:"email"`
	}
	if _, err := g.Get(ctx, "/user", nil, &u); err != nil {
		return gitprovider.User{}, err
	}
	return gitprovider.User{
		ID: strconv.FormatInt(u.ID, 10), Login: u.Login, AvatarURL: u.AvatarURL, Company: u.Company, Name: u.Name, Email: u.Email,
	}, nil
}

func (g *github) Installations(ctx context.Context) ([]string, error) {
	type page struct {
		Installations []struct {
			ID int64 `json:"id"`
		} `json:"installations"`
	}
	var ids []string
	err := call.Each(ctx, g.Caller, call.Request{Path: "/user/installations", Query: call.PageQuery(1, 100)}, maxPages, func(p page) bool {
		for _, i := range p.Installations {
			ids = append(ids, strconv.FormatInt(i.ID, 10))
		}
		return true
	})
	return ids, err
}
