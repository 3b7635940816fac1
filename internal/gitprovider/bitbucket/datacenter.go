package bitbucket

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// mostAtOnce is the default maximum page size of a Data Center. Its response says how far
// it got.
const mostAtOnce = 1000

// dataCenter is a Bitbucket Data Center as seen with one token. A repository name is
// project/slug; a user's own project starts with "~".
type dataCenter struct{ *call.Caller }

func newDataCenter(o call.Options) gitprovider.Provider {
	api := func(site *url.URL) *url.URL { return site.JoinPath("rest", "api", "1.0") }
	return &dataCenter{call.New(o, "", api, authorize(o.Token))}
}

// centerPage is a page of a list. The server decides where the next one starts, because
// it skips items that the user may not see.
type centerPage[T any] struct {
	Values []T
	Last   bool `json:"isLastPage"`
	Next   int  `json:"nextPageStart"`
}

// centerUser is a person. Name is the login name, Slug is used in URLs.
type centerUser struct {
	ID    int64
	Name  string
	Slug  string
	Email string `json:"emailAddress"`
	Full  string `json:"displayName"`
}

// centerList reads a list up to most items.
func centerList[T any](ctx context.Context, d *dataCenter, path string, query url.Values, most int) (items []T, more bool, err error) {
	return centerWalk(query, most, func(query url.Values) (page centerPage[T], err error) {
		_, err = d.Get(ctx, path, query, &page)
		return page, err
	})
}

// centerWalk reads pages up to most items.
func centerWalk[T any](query url.Values, most int, read func(url.Values) (centerPage[T], error)) (items []T, more bool, err error) {
	if query == nil {
		query = url.Values{}
	}
	start := 0
	for range mostPages + most/25 { // pages may be shorter than requested; bounded
		query.Set("start", strconv.Itoa(start))
		query.Set("limit", strconv.Itoa(min(most-len(items), mostAtOnce)))
		page, err := read(query)
		if err != nil {
			return nil, false, err
		}
		items = append(items, page.Values...)
		if page.Last || page.Next <= start {
			return items, false, nil
		}
		if len(items) >= most {
			break
		}
		start = page.Next
	}
	return items, true, nil
}

// whoami returns the login name of the user. The API does not have it, but a web page
// does.
func (d *dataCenter) whoami(ctx context.Context) (string, error) {
	body, _, err := d.Raw(ctx, call.Request{Path: "/plugins/servlet/applinks/whoami", Elsewhere: d.Site, Accept: "text/plain"})
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(body))
	switch {
	case name == "": // no token
		return "", d.Fail(gitprovider.BadToken, "")
	case len(name) > 255 || strings.ContainsFunc(name, func(r rune) bool { return r == '<' || unicode.IsControl(r) }): // an HTML page
		return "", d.Fail(gitprovider.Unavailable, "")
	}
	return name, nil
}

// user finds the user by name: its URL has the slug, which may differ.
func (d *dataCenter) user(ctx context.Context) (centerUser, error) {
	name, err := d.whoami(ctx)
	if err != nil {
		return centerUser{}, err
	}
	found, _, err := centerList[centerUser](ctx, d, "/users", url.Values{"filter": {name}}, mostAtOnce)
	if err != nil {
		return centerUser{}, err
	}
	for _, u := range found {
		if strings.EqualFold(u.Name, name) {
			return u, nil
		}
	}
	return centerUser{}, d.Fail(gitprovider.NotFound, "")
}

func (d *dataCenter) User(ctx context.Context) (gitprovider.User, error) {
	u, err := d.user(ctx)
	if err != nil {
		return gitprovider.User{}, err
	}
	return gitprovider.User{
		ID: strconv.FormatInt(u.ID, 10), Login: u.Name, Name: u.Full, Email: u.Email,
		AvatarURL: d.Site.JoinPath("users", u.Slug, "avatar.png").String(),
	}, nil
}

// Installations returns the projects that the user sees, starting with the user's own,
// which is in no list.
func (d *dataCenter) Installations(ctx context.Context) ([]string, error) {
	u, err := d.user(ctx)
	if err != nil {
		return nil, err
	}
	projects, _, err := centerList[centerProject](ctx, d, "/projects", nil, mostAtOnce)
	if err != nil {
		return nil, err
	}
	keys := []string{"~" + u.Slug}
	for _, p := range projects {
		keys = append(keys, p.Key)
	}
	return keys, nil
}

// below returns the path of a resource of a repository.
func (d *dataCenter) below(repository string, parts ...string) (string, error) {
	key, slug, err := split(d.Caller, repository)
	return call.Path(append([]string{"projects", key, "repos", slug}, parts...)...), err
}

// builds returns the base URL of the build status API, which is a separate one; nil
// without a host, which is reported by the caller.
func (d *dataCenter) builds() *url.URL {
	if d.Site == nil {
		return nil
	}
	return d.Site.JoinPath("rest", "build-status", "1.0")
}
