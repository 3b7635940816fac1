package bitbucket

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

const cloudHost = "bitbucket.org"

// cloud is Bitbucket Cloud as seen with one token. Everything belongs to a workspace, and
// nothing can be listed across workspaces.
type cloud struct{ *call.Caller }

func newCloud(o call.Options, api func(site *url.URL) *url.URL) gitprovider.Provider {
	return &cloud{call.New(o, cloudHost, api, authorize(o.Token))}
}

// cloudPage is a page of a list. Next is the full URL of the next page.
type cloudPage[T any] struct {
	Values []T
	Next   string
	Size   *int // of the whole list, where counting is cheap
}

// cloudUser is a person, a team or a bot. Only UUID identifies it: names can change.
type cloudUser struct {
	UUID      string
	AccountID string `json:"account_id"`
	Username  string // only for the token's user
	Nickname  string
	Name      string `json:"display_name"`
	Type      string
	Links     struct{ Avatar struct{ Href string } }
}

func (u cloudUser) login() string { return cmp.Or(u.Username, u.Nickname, u.Name, u.AccountID) }

// cloudList reads a list up to most items.
func cloudList[T any](ctx context.Context, c *cloud, path string, query url.Values, most int) (items []T, more bool, err error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("pagelen", strconv.Itoa(min(most, 100)))
	for range (most + 99) / 100 * 2 { // pages may be shorter than requested
		var page cloudPage[T]
		if _, err := c.Get(ctx, path, query, &page); err != nil {
			return nil, false, err
		}
		items = append(items, page.Values...)
		query = call.QueryOf(page.Next)
		if len(items) >= most || query == nil {
			break
		}
	}
	if len(items) > most {
		return items[:most], true, nil
	}
	return items, query != nil, nil
}

// quoted quotes text for Bitbucket's query language.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func (c *cloud) user(ctx context.Context) (cloudUser, error) {
	var u cloudUser
	_, err := c.Get(ctx, "/user", nil, &u)
	return u, err
}

func (c *cloud) User(ctx context.Context) (gitprovider.User, error) {
	u, err := c.user(ctx)
	if err != nil {
		return gitprovider.User{}, err
	}
	email, err := c.email(ctx)
	if err != nil {
		return gitprovider.User{}, err
	}
	return gitprovider.User{ID: u.AccountID, Login: u.login(), Name: u.Name, AvatarURL: u.Links.Avatar.Href, Email: email}, nil
}

// email returns the e-mail address of the user, if the token has the permission to read
// it.
func (c *cloud) email(ctx context.Context) (string, error) {
	type address struct {
		Email   string
		Primary bool `json:"is_primary"`
	}
	all, _, err := cloudList[address](ctx, c, "/user/emails", nil, 100)
	for _, a := range all {
		if a.Primary {
			return a.Email, nil
		}
	}
	return "", ifSeen(err)
}

// Installations are the workspaces that the user belongs to.
func (c *cloud) Installations(ctx context.Context) ([]string, error) {
	type access struct{ Workspace struct{ Slug string } }
	all, _, err := cloudList[access](ctx, c, "/user/workspaces", nil, 100*mostPages)
	var names []string
	for _, a := range all {
		names = append(names, a.Workspace.Slug)
	}
	return names, err
}

// everywhere sends the same request to every workspace and joins the results. Workspaces
// that the token cannot read are skipped, unless that holds for all.
func everywhere[T any](ctx context.Context, c *cloud, ask func(ctx context.Context, workspace string) (items []T, more bool, err error)) (all []T, more bool, err error) {
	workspaces, err := c.Installations(ctx)
	if err != nil {
		return nil, false, err
	}
	found, rest, denied := make([][]T, len(workspaces)), make([]bool, len(workspaces)), make([]error, len(workspaces))
	err = together(ctx, len(workspaces), func(ctx context.Context, i int) (err error) {
		found[i], rest[i], err = ask(ctx, workspaces[i])
		if hidden(err) {
			denied[i] = err
			return nil
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	seen := 0
	for i := range workspaces {
		all, more = append(all, found[i]...), more || rest[i]
		if denied[i] == nil {
			seen++
		}
	}
	if seen == 0 && len(workspaces) > 0 {
		return nil, false, denied[0]
	}
	return all, more, nil
}
