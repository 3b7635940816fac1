package gitea

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// hosts are the public hosts of the providers.
var hosts = map[string]string{"gitea": "gitea.com", "forgejo": "codeberg.org"}

// maxPage is the default maximum page size of a host.
const maxPage = 50

type provider struct {
	call   *call.Caller
	self   atomic.Pointer[user] // cached user of the token
	pauses []time.Duration      // see settle
}

// New returns the adapter for Gitea or Forgejo, by the name in the options. Both accept
// access tokens and OAuth tokens as bearer tokens.
func New(o call.Options) gitprovider.Provider {
	api := func(site *url.URL) *url.URL { return site.JoinPath("api", "v1") }
	return &provider{pauses: looksAgain, call: call.New(o, hosts[o.Name], api, func(h http.Header) {
		if o.Token != "" {
			h.Set("Authorization", "Bearer "+o.Token)
		}
	})}
}

func (p *provider) User(ctx context.Context) (gitprovider.User, error) {
	u, err := p.me(ctx)
	return u.read(), err
}

func (p *provider) me(ctx context.Context) (user, error) {
	if u := p.self.Load(); u != nil {
		return *u, nil
	}
	var u user
	if _, err := p.call.Get(ctx, "/user", nil, &u); err != nil {
		return user{}, err
	}
	p.self.Store(&u)
	return u, nil
}

// Repositories uses the search for repositories of the user, because the plain list has a
// fixed order.
func (p *provider) Repositories(ctx context.Context, q gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
	me, err := p.me(ctx)
	if err != nil {
		return gitprovider.Repositories{}, err
	}
	query := pageQuery(q.Page, q.PerPage)
	query.Set("uid", strconv.FormatInt(me.ID, 10))
	query.Set("sort", "updated")
	query.Set("order", "desc")
	switch q.Sort {
	case "created":
		query.Set("sort", "created")
	case "full_name":
		query.Set("sort", "alpha")
		query.Set("order", "asc")
	}
	found, answer, err := p.find(ctx, query)
	if err != nil {
		return gitprovider.Repositories{}, err
	}
	out := gitprovider.Repositories{Next: answer.NextPage()}
	for _, r := range found {
		one := r.read()
		if r.Owner.ID == me.ID { // the kind of other owners is unknown
			one.Owner = "user"
		}
		out.Items = append(out.Items, one)
	}
	return out, nil
}

func (p *provider) Search(ctx context.Context, q gitprovider.SearchQuery) ([]gitprovider.Repository, error) {
	if address, ok := call.Pasted(q.Text); ok {
		return p.pasted(ctx, address)
	}
	query := pageQuery(1, q.PerPage)
	query.Set("q", q.Text)
	switch q.Sort {
	case "stars", "forks", "updated":
		query.Set("sort", q.Sort)
		query.Set("order", "desc")
		if q.Order == "asc" {
			query.Set("order", "asc")
		}
	}
	found, _, err := p.find(ctx, query)
	if err != nil {
		return nil, err
	}
	var out []gitprovider.Repository
	for _, r := range found {
		out = append(out, r.read())
	}
	return out, nil
}

// pasted finds the repository of a URL.
func (p *provider) pasted(ctx context.Context, address *url.URL) ([]gitprovider.Repository, error) {
	if !p.call.Here(address) {
		return nil, nil
	}
	path := strings.Trim(strings.TrimPrefix(address.Path, p.call.Site.Path), "/")
	parts := strings.Split(path, "/")
	if len(parts) < 2 {
		return nil, nil
	}
	r, err := p.Repository(ctx, parts[0]+"/"+strings.TrimSuffix(parts[1], ".git"))
	if gitprovider.ReasonOf(err) == gitprovider.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []gitprovider.Repository{r}, nil
}

func (p *provider) find(ctx context.Context, query url.Values) ([]repository, call.Answer, error) {
	var found struct {
		Data []repository `json:"data"`
	}
	answer, err := p.call.Get(ctx, "/repos/search", query, &found)
	return found.Data, answer, err
}

func (p *provider) Repository(ctx context.Context, name string) (gitprovider.Repository, error) {
	var r repository
	err := p.get(ctx, name, "", nil, &r)
	return r.read(), err
}

// Installations are only available at GitHub.
func (p *provider) Installations(context.Context) ([]string, error) {
	return nil, p.call.Fail(gitprovider.Unsupported, "")
}

// below returns the path of a resource of a repository. Invalid names are rejected,
// because they could lead to another resource.
func (p *provider) below(name, rest string) (string, error) {
	if !gitprovider.ValidRepository(name) || strings.Count(name, "/") != 1 {
		return "", p.call.Fail(gitprovider.NotFound, "")
	}
	return "/repos" + call.Segments(name) + rest, nil
}

// get requests a resource of a repository.
func (p *provider) get(ctx context.Context, name, rest string, query url.Values, out any) error {
	path, err := p.below(name, rest)
	if err != nil {
		return err
	}
	_, err = p.call.Get(ctx, path, query, out)
	return err
}

// all reads at most most pages of a list of a repository.
func all[T any](ctx context.Context, p *provider, name, rest string, most int) ([]T, error) {
	path, err := p.below(name, rest)
	if err != nil {
		return nil, err
	}
	var out []T
	err = call.Each(ctx, p.call, call.Request{Path: path, Query: pageQuery(1, maxPage)}, most, func(page []T) bool {
		out = append(out, page...)
		return true
	})
	return out, err
}

func pageQuery(page, size int) url.Values {
	return url.Values{
		"page":  {strconv.Itoa(max(page, 1))},
		"limit": {strconv.Itoa(min(call.PageSize(size), maxPage))},
	}
}
