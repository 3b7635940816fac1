package bitbucket

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// cloudRepository is a repository in Bitbucket Cloud's API.
type cloudRepository struct {
	UUID       string
	FullName   string    `json:"full_name"`
	Private    bool      `json:"is_private"`
	CreatedOn  time.Time `json:"created_on"`
	UpdatedOn  time.Time `json:"updated_on"`
	MainBranch struct{ Name string }
	Owner      cloudUser
}

func (r cloudRepository) repository() gitprovider.Repository {
	return gitprovider.Repository{
		ID: r.UUID, Name: r.FullName, Public: !r.Private, PushedAt: r.UpdatedOn, MainBranch: r.MainBranch.Name,
		Owner: map[string]string{"user": "user", "team": "organization"}[r.Owner.Type],
	}
}

func cloudRepositories(found []cloudRepository) []gitprovider.Repository {
	out := make([]gitprovider.Repository, len(found))
	for i, r := range found {
		out[i] = r.repository()
	}
	return out
}

// cloudOrder is a sort order of Bitbucket, and the same for merging lists.
type cloudOrder struct {
	field   string
	compare func(a, b cloudRepository) int
}

func orderOf(sort string) cloudOrder {
	switch sort {
	case "created":
		return cloudOrder{"-created_on", func(a, b cloudRepository) int { return b.CreatedOn.Compare(a.CreatedOn) }}
	case "full_name":
		return cloudOrder{"full_name", func(a, b cloudRepository) int { return cmp.Compare(a.FullName, b.FullName) }}
	}
	return cloudOrder{"-updated_on", func(a, b cloudRepository) int { return b.UpdatedOn.Compare(a.UpdatedOn) }}
}

// Repositories of one workspace are paged by Bitbucket. For all workspaces, each is read
// up to the requested page, so that the order is right.
func (c *cloud) Repositories(ctx context.Context, q gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
	q.Page, q.PerPage = pageNumber(q.Page), call.PageSize(q.PerPage)
	order := orderOf(q.Sort)
	query := url.Values{"role": {"member"}, "sort": {order.field}}
	if q.Installation != "" {
		query.Set("page", strconv.Itoa(q.Page))
		query.Set("pagelen", strconv.Itoa(q.PerPage))
		var page cloudPage[cloudRepository]
		if _, err := c.Get(ctx, call.Path("repositories", q.Installation), query, &page); err != nil {
			return gitprovider.Repositories{}, err
		}
		return nextAfter(q.Page, cloudRepositories(page.Values), page.Next != ""), nil
	}
	all, more, err := everywhere(ctx, c, func(ctx context.Context, workspace string) ([]cloudRepository, bool, error) {
		each := url.Values{"role": query["role"], "sort": query["sort"]}
		return cloudList[cloudRepository](ctx, c, call.Path("repositories", workspace), each, q.Page*q.PerPage)
	})
	if err != nil {
		return gitprovider.Repositories{}, err
	}
	slices.SortStableFunc(all, order.compare)
	some := window(all, q.Page, q.PerPage)
	return nextAfter(q.Page, cloudRepositories(some), len(some) > 0 && (more || len(all) > q.Page*q.PerPage)), nil
}

func nextAfter(page int, items []gitprovider.Repository, more bool) gitprovider.Repositories {
	out := gitprovider.Repositories{Items: items}
	if more {
		out.Next = page + 1
	}
	return out
}

// Search searches the user's workspaces, because there is no other list of repositories.
// A text with a slash names the workspace.
func (c *cloud) Search(ctx context.Context, q gitprovider.SearchQuery) ([]gitprovider.Repository, error) {
	if address, ok := call.Pasted(q.Text); ok {
		return c.pasted(ctx, address)
	}
	most := call.PageSize(q.PerPage)
	field := "-updated_on" // Bitbucket counts neither stars nor forks
	if q.Order == "asc" {
		field = "updated_on"
	}
	if workspace, part, ok := strings.Cut(q.Text, "/"); ok && workspace != "" {
		query := url.Values{"sort": {field}, "q": {"name ~ " + quoted(part)}}
		found, _, err := cloudList[cloudRepository](ctx, c, call.Path("repositories", workspace), query, most)
		return cloudRepositories(found), ifSeen(err)
	}
	found, _, err := everywhere(ctx, c, func(ctx context.Context, workspace string) ([]cloudRepository, bool, error) {
		query := url.Values{"role": {"member"}, "sort": {field}, "q": {"name ~ " + quoted(q.Text)}}
		return cloudList[cloudRepository](ctx, c, call.Path("repositories", workspace), query, most)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b cloudRepository) int {
		if q.Order == "asc" {
			a, b = b, a
		}
		return b.UpdatedOn.Compare(a.UpdatedOn)
	})
	return cloudRepositories(found[:min(most, len(found))]), nil
}

// pasted finds the repository of a URL: its name is the start of the path.
func (c *cloud) pasted(ctx context.Context, address *url.URL) ([]gitprovider.Repository, error) {
	parts := strings.SplitN(strings.Trim(address.Path, "/"), "/", 3)
	if !c.Here(address) || len(parts) < 2 {
		return nil, nil
	}
	return only(c.Repository(ctx, parts[0]+"/"+strings.TrimSuffix(parts[1], ".git")))
}

// only returns a list of one repository, or an empty list if it was not found.
func only(found gitprovider.Repository, err error) ([]gitprovider.Repository, error) {
	switch {
	case gitprovider.ReasonOf(err) == gitprovider.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []gitprovider.Repository{found}, nil
}

func (c *cloud) Repository(ctx context.Context, name string) (gitprovider.Repository, error) {
	at, err := c.below(name)
	if err != nil {
		return gitprovider.Repository{}, err
	}
	var r cloudRepository
	_, err = c.Get(ctx, at, nil, &r)
	return r.repository(), err
}

// below returns the path of a resource of a repository.
func (c *cloud) below(repository string, parts ...string) (string, error) {
	owner, slug, err := split(c.Caller, repository)
	return call.Path(append([]string{"repositories", owner, slug}, parts...)...), err
}

func (c *cloud) Branches(ctx context.Context, repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	at, err := c.below(repository, "refs", "branches")
	if err != nil {
		return gitprovider.Branches{}, err
	}
	query := url.Values{
		"page": {strconv.Itoa(pageNumber(q.Page))}, "pagelen": {strconv.Itoa(call.PageSize(q.PerPage))}, "sort": {"-target.date"},
	}
	if q.Query != "" {
		query.Set("q", "name ~ "+quoted(q.Query))
	}
	var page cloudPage[struct {
		Name   string
		Target struct {
			Hash string
			Date time.Time
		}
	}]
	if _, err := c.Get(ctx, at, query, &page); err != nil {
		return gitprovider.Branches{}, err
	}
	out := gitprovider.Branches{More: page.Next != "", Total: -1}
	if page.Size != nil {
		out.Total = *page.Size
	}
	for _, b := range page.Values { // only administrators can see which are protected
		out.Items = append(out.Items, gitprovider.Branch{Name: b.Name, Commit: b.Target.Hash, PushedAt: b.Target.Date})
	}
	return out, nil
}
