package httpapi

import (
	"context"

	"deckhand/api"
	"deckhand/internal/gitprovider"
)

type searchQuery struct {
	Text     string `query:"query" required:"true" maxLength:"500" doc:"A part of the name, or an address."`
	PerPage  int64  `query:"per_page" default:"5" minimum:"1" maximum:"100"`
	Sort     string `query:"sort" default:"stars" maxLength:"50" doc:"stars, forks or updated."`
	Order    string `query:"order" default:"desc" enum:"desc,asc"`
	Provider string `query:"selected_provider" enum:"github,gitlab,bitbucket,enterprise_sso,gitea,forgejo" doc:"Ask only this one."`
}

func searchRepositories(d *Door, ctx context.Context, c *call, q searchQuery, _ none) ([]api.GitRepository, error) {
	all, err := d.forges(ctx, c.who.User, q.Provider, needSearch)
	if err != nil {
		return nil, err
	}
	found, err := askAll(d, ctx, c, all, func(ctx context.Context, f forge) ([]gitprovider.Repository, error) {
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
	Text       string `query:"query" required:"true" maxLength:"500" doc:"A part of the branch's name."`
	PerPage    int64  `query:"per_page" default:"30" minimum:"1" maximum:"100"`
	Provider   string `query:"selected_provider" enum:"github,gitlab,bitbucket,enterprise_sso,gitea,forgejo" doc:"Ask only this one."`
}

func searchBranches(d *Door, ctx context.Context, c *call, q searchBranchQuery, _ none) ([]api.GitBranch, error) {
	page, err := d.branches(ctx, c, q.Provider, needSearch, q.Repository, gitprovider.BranchQuery{Query: q.Text, Page: 1, PerPage: int(q.PerPage)})
	return branchViews(page.Items), err
}

type branchQuery struct {
	Repository string `query:"repository" required:"true" maxLength:"500" doc:"owner/name."`
	Page       int64  `query:"page" default:"1" minimum:"1" maximum:"100000"`
	PerPage    int64  `query:"per_page" default:"30" minimum:"1" maximum:"100"`
	Provider   string `query:"selected_provider" enum:"github,gitlab,bitbucket,enterprise_sso,gitea,forgejo" doc:"Ask only this one."`
}

func gitBranches(d *Door, ctx context.Context, c *call, q branchQuery, _ none) (api.GitBranches, error) {
	page, err := d.branches(ctx, c, q.Provider, needToken, q.Repository, gitprovider.BranchQuery{Page: int(q.Page), PerPage: int(q.PerPage)})
	out := api.GitBranches{Branches: branchViews(page.Items), HasNextPage: page.More, CurrentPage: int(q.Page), PerPage: int(q.PerPage)}
	if page.Total >= 0 {
		out.TotalCount = &page.Total
	}
	return out, err
}

// branches asks whoever has the repository.
func (d *Door) branches(ctx context.Context, c *call, provider, missing, repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	if err := checkRepository("query", "repository", repository); err != nil {
		return gitprovider.Branches{}, err
	}
	all, err := d.forges(ctx, c.who.User, provider, missing)
	if err != nil {
		return gitprovider.Branches{}, err
	}
	a, err := askAny(d, ctx, c, all, func(ctx context.Context, f forge) (gitprovider.Branches, error) {
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
		Msg: "A repository is named owner/name: letters, digits, dots, dashes and underscores, with slashes between."}}}
}
