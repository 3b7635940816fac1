package github

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// repository is a repository in the REST API.
type repository struct {
	ID       int64     `json:"id"`
	FullName string    `json:"full_name"`
	Private  bool      `json:"private"`
	Stars    *int      `json:"stargazers_count"`
	PushedAt time.Time `json:"pushed_at"`
	Default  string    `json:"default_branch"`
	Owner    struct {
		Type string `json:"type"`
	} `json:"owner"`
}

func (r repository) port() gitprovider.Repository {
	owner := strings.ToLower(r.Owner.Type)
	if owner != "user" && owner != "organization" {
		owner = ""
	}
	return gitprovider.Repository{
		ID: strconv.FormatInt(r.ID, 10), Name: r.FullName, Public: !r.Private, Stars: r.Stars,
		PushedAt: r.PushedAt.UTC(), Owner: owner, MainBranch: r.Default,
	}
}

func (g *github) Repositories(ctx context.Context, q gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
	query := call.PageQuery(q.Page, q.PerPage)
	var items []repository
	var answer call.Answer
	var err error
	if q.Installation != "" {
		var page struct {
			Repositories []repository `json:"repositories"`
		}
		answer, err = g.Get(ctx, call.Path("user", "installations", q.Installation, "repositories"), query, &page)
		items = page.Repositories
	} else {
		query.Set("sort", "pushed")
		if slices.Contains([]string{"updated", "created", "full_name"}, q.Sort) {
			query.Set("sort", q.Sort)
		}
		answer, err = g.Get(ctx, "/user/repos", query, &items)
	}
	if err != nil {
		return gitprovider.Repositories{}, err
	}
	return gitprovider.Repositories{Items: ported(items), Next: answer.NextPage()}, nil
}

func ported(items []repository) []gitprovider.Repository {
	out := make([]gitprovider.Repository, 0, len(items))
	for _, r := range items {
		out = append(out, r.port())
	}
	return out
}

func (g *github) Repository(ctx context.Context, name string) (gitprovider.Repository, error) {
	path, err := g.repository(name)
	if err != nil {
		return gitprovider.Repository{}, err
	}
	var r repository
	if _, err := g.Get(ctx, path, nil, &r); err != nil {
		return gitprovider.Repository{}, err
	}
	return r.port(), nil
}

// Search lists the user's own repositories first: sorted by stars, they would be far down
// the list.
func (g *github) Search(ctx context.Context, q gitprovider.SearchQuery) ([]gitprovider.Repository, error) {
	if address, ok := call.Pasted(q.Text); ok {
		return g.pasted(ctx, address)
	}
	terms := words(q.Text)
	if terms == "" {
		return nil, nil
	}
	size := call.PageSize(q.PerPage)
	var found []gitprovider.Repository
	if g.token != "" && !strings.Contains(terms, " user:") {
		own, err := g.find(ctx, terms+" fork:true user:@me", q, size)
		if err != nil {
			return nil, err
		}
		found = own
	}
	if len(found) < size {
		all, err := g.find(ctx, terms, q, size)
		if err != nil {
			return nil, err
		}
		found = append(found, all...)
	}
	seen := map[string]bool{}
	found = slices.DeleteFunc(found, func(r gitprovider.Repository) bool {
		twice := seen[r.ID]
		seen[r.ID] = true
		return twice
	})
	return found[:min(size, len(found))], nil
}

// words returns the search terms for a part of a name, or owner/part. Quotes and colons
// are removed, because they are search syntax.
func words(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"':", r) }), " ")
	owner, part, ok := strings.Cut(text, "/")
	if owner = strings.TrimSpace(owner); ok && owner != "" && !strings.Contains(owner, " ") {
		return strings.TrimSpace(strings.ReplaceAll(part, "/", " ") + " in:name fork:true user:" + owner)
	}
	if text = strings.TrimSpace(strings.ReplaceAll(text, "/", " ")); text == "" {
		return ""
	}
	return text + " in:name"
}

func (g *github) find(ctx context.Context, terms string, q gitprovider.SearchQuery, size int) ([]gitprovider.Repository, error) {
	query := url.Values{"q": {terms}, "per_page": {strconv.Itoa(size)}}
	if slices.Contains([]string{"stars", "forks", "updated"}, q.Sort) {
		query.Set("sort", q.Sort)
		if q.Order == "asc" || q.Order == "desc" {
			query.Set("order", q.Order)
		}
	}
	var page struct {
		Items []repository `json:"items"`
	}
	_, err := g.Get(ctx, "/search/repositories", query, &page)
	if gitprovider.ReasonOf(err) == gitprovider.Refused && strings.Contains(terms, " user:") && !strings.Contains(terms, "user:@me") {
		return nil, nil // unknown owner, which GitHub reports as an invalid search
	}
	return ported(page.Items), err
}

// pasted finds the repository of a URL.
func (g *github) pasted(ctx context.Context, address *url.URL) ([]gitprovider.Repository, error) {
	parts := strings.Split(strings.Trim(address.Path, "/"), "/")
	if !g.Here(address) || len(parts) < 2 {
		return nil, nil
	}
	r, err := g.Repository(ctx, parts[0]+"/"+strings.TrimSuffix(parts[1], ".git"))
	if gitprovider.ReasonOf(err) == gitprovider.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []gitprovider.Repository{r}, nil
}
