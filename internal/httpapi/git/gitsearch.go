package git

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi/rest"
)

type searchQuery struct {
	Text     string `query:"query" required:"true" maxLength:"500" doc:"Part of the name, or a URL."`
	PerPage  int64  `query:"per_page" default:"5" minimum:"1" maximum:"100"`
	Sort     string `query:"sort" default:"stars" maxLength:"50" doc:"stars, forks or updated."`
	Order    string `query:"order" default:"desc" enum:"desc,asc"`
	Provider string `query:"selected_provider" enum:"git_provider" doc:"Query only this provider."`
}

func (d *Handlers) searchRepositories(ctx context.Context, c *rest.Call, q searchQuery, _ rest.None) ([]api.GitRepository, error) {
	all, err := d.forges(ctx, c.Who.User, q.Provider, NeedSearch)
	if err != nil {
		return nil, err
	}
	found, err := askAll(ctx, d, c, all, func(ctx context.Context, f forge) ([]gitprovider.Repository, error) {
		return f.Search(ctx, gitprovider.SearchQuery{Text: q.Text, Sort: q.Sort, Order: q.Order, PerPage: int(q.PerPage)})
	})
	out := []api.GitRepository{}
	for _, a := range found {
		for _, r := range a.value {
			out = append(out, repositoryView(a.forge.name, r))
		}
	}
	return out, err
}

type searchBranchQuery struct {
	Repository string `query:"repository" required:"true" maxLength:"500" doc:"owner/name."`
	Text       string `query:"query" required:"true" maxLength:"500" doc:"Part of the branch name."`
	PerPage    int64  `query:"per_page" default:"30" minimum:"1" maximum:"100"`
	Provider   string `query:"selected_provider" enum:"git_provider" doc:"Query only this provider."`
}

func (d *Handlers) searchBranches(ctx context.Context, c *rest.Call, q searchBranchQuery, _ rest.None) ([]api.GitBranch, error) {
	page, err := d.branches(ctx, c, q.Provider, NeedSearch, q.Repository, gitprovider.BranchQuery{Query: q.Text, Page: 1, PerPage: int(q.PerPage)})
	return branchViews(page.Items), err
}

type branchQuery struct {
	Repository string `query:"repository" required:"true" maxLength:"500" doc:"owner/name."`
	Page       *int64 `query:"page" minimum:"1" maximum:"100000" doc:"Page number. Default: 1, if per_page is given."`
	PerPage    *int64 `query:"per_page" minimum:"1" maximum:"100" doc:"Page size. Default: 30, if page is given."`
	Provider   string `query:"selected_provider" enum:"git_provider" doc:"Query only this provider."`
}

const aboutBranches = "With page or per_page, returns one page. Without either, returns a plain list of all branches, up to 1000, for clients without pagination."

// branchAnswer is a page of branches, or a list of them for clients that know no pages.
type branchAnswer struct {
	page *api.GitBranches
	all  []api.GitBranch
}

// MarshalJSON writes the one that there is.
func (b branchAnswer) MarshalJSON() ([]byte, error) {
	if b.page != nil {
		return json.Marshal(b.page)
	}
	return json.Marshal(b.all)
}

// Schema implements huma.SchemaProvider.
func (branchAnswer) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(reflect.TypeFor[api.GitBranches](), true, ""),
		{Type: huma.TypeArray, Items: r.Schema(reflect.TypeFor[api.GitBranch](), true, "")}}}
}

func (d *Handlers) gitBranches(ctx context.Context, c *rest.Call, q branchQuery, _ rest.None) (branchAnswer, error) {
	if q.Page == nil && q.PerPage == nil {
		return d.allBranches(ctx, c, q)
	}
	ask := gitprovider.BranchQuery{Page: 1, PerPage: 30}
	if q.Page != nil {
		ask.Page = int(*q.Page)
	}
	if q.PerPage != nil {
		ask.PerPage = int(*q.PerPage)
	}
	page, err := d.branches(ctx, c, q.Provider, NeedToken, q.Repository, ask)
	out := api.GitBranches{Branches: branchViews(page.Items), HasNextPage: page.More, CurrentPage: ask.Page, PerPage: ask.PerPage}
	if page.Total >= 0 {
		out.TotalCount = &page.Total
	}
	return branchAnswer{page: &out}, err
}

// allBranches asks for one page after the other, ten large ones at most.
func (d *Handlers) allBranches(ctx context.Context, c *rest.Call, q branchQuery) (branchAnswer, error) {
	out := branchAnswer{all: []api.GitBranch{}}
	for n := 1; n <= 10; n++ {
		page, err := d.branches(ctx, c, q.Provider, NeedToken, q.Repository, gitprovider.BranchQuery{Page: n, PerPage: 100})
		if err != nil {
			return out, err
		}
		if out.all = append(out.all, branchViews(page.Items)...); !page.More {
			break
		}
	}
	return out, nil
}

// branches asks the provider that has the repository.
func (d *Handlers) branches(ctx context.Context, c *rest.Call, provider, missing, repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	if err := checkRepository("query", "repository", repository); err != nil {
		return gitprovider.Branches{}, err
	}
	all, err := d.forges(ctx, c.Who.User, provider, missing)
	if err != nil {
		return gitprovider.Branches{}, err
	}
	a, err := askAny(ctx, d, c, all, func(ctx context.Context, f forge) (gitprovider.Branches, error) {
		return f.Branches(ctx, repository, q)
	})
	return a.value, err
}

func branchViews(all []gitprovider.Branch) []api.GitBranch {
	out := []api.GitBranch{}
	for _, b := range all {
		out = append(out, api.GitBranch{Name: b.Name, CommitSHA: b.Commit, Protected: b.Protected, LastPushDate: moment(b.PushedAt)})
	}
	return out
}

// checkRepository refuses names that a provider, git or a URL could take for something else.
func checkRepository(in, name, repository string) error {
	if gitprovider.ValidRepository(repository) {
		return nil
	}
	return &api.ValidationError{Detail: []api.FieldError{{Loc: []any{in, name}, Type: "value_error",
		Msg: "Must be owner/name: letters, digits, dots, dashes and underscores, separated by slashes."}}}
}
