package gitlab

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

// listed is a project in GitLab's API.
type listed struct {
	ID            int64
	Path          string `json:"path_with_namespace"`
	Visibility    string
	Stars         *int      `json:"star_count"`
	ActiveAt      time.Time `json:"last_activity_at"`
	DefaultBranch string    `json:"default_branch"`
	Namespace     struct{ Kind string }
}

func (p listed) repository() gitprovider.Repository {
	return gitprovider.Repository{
		ID: strconv.FormatInt(p.ID, 10), Name: p.Path, Public: p.Visibility == "public", Stars: p.Stars,
		PushedAt: p.ActiveAt, MainBranch: p.DefaultBranch,
		Owner: map[string]string{"user": "user", "group": "organization"}[p.Namespace.Kind],
	}
}

func repositories(projects []listed) []gitprovider.Repository {
	out := make([]gitprovider.Repository, len(projects))
	for i, p := range projects {
		out[i] = p.repository()
	}
	return out
}

func (h *host) Repositories(ctx context.Context, q gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
	query := call.PageQuery(q.Page, q.PerPage)
	query.Set("membership", "true")
	by, order := "last_activity_at", "desc" // GitLab does not distinguish pushes from other activity
	switch q.Sort {
	case "updated":
		by = "updated_at"
	case "created":
		by = "created_at"
	case "full_name":
		by, order = "path", "asc"
	}
	query.Set("order_by", by)
	query.Set("sort", order)
	var projects []listed
	answer, err := h.Get(ctx, "/projects", query, &projects)
	if err != nil {
		return gitprovider.Repositories{}, err
	}
	return gitprovider.Repositories{Items: repositories(projects), Next: answer.NextPage()}, nil
}

// Search lists the user's own projects first, then public ones, which would hide them on
// a large host.
func (h *host) Search(ctx context.Context, q gitprovider.SearchQuery) ([]gitprovider.Repository, error) {
	if address, ok := call.Pasted(q.Text); ok {
		return h.pasted(ctx, address)
	}
	q.PerPage = call.PageSize(q.PerPage)
	own, err := h.find(ctx, q, "membership", "true")
	if err != nil || len(own) >= q.PerPage {
		return own, err
	}
	public, err := h.find(ctx, q, "visibility", "public")
	if err != nil {
		if ctx.Err() != nil || len(own) == 0 {
			return nil, err
		}
		return own, nil
	}
	for _, p := range public {
		if len(own) < q.PerPage && !slices.ContainsFunc(own, func(o gitprovider.Repository) bool { return o.ID == p.ID }) {
			own = append(own, p)
		}
	}
	return own, nil
}

func (h *host) find(ctx context.Context, q gitprovider.SearchQuery, name, value string) ([]gitprovider.Repository, error) {
	query := call.PageQuery(1, q.PerPage)
	query.Set(name, value)
	query.Set("search", q.Text)
	if strings.Contains(q.Text, "/") {
		query.Set("search_namespaces", "true")
	}
	by := "star_count" // GitLab cannot sort by forks
	if q.Sort == "updated" {
		by = "last_activity_at"
	}
	query.Set("order_by", by)
	query.Set("sort", cmp.Or(q.Order, "desc"))
	var projects []listed
	_, err := h.Get(ctx, "/projects", query, &projects)
	return repositories(projects), err
}

// pasted finds the project of a URL.
func (h *host) pasted(ctx context.Context, address *url.URL) ([]gitprovider.Repository, error) {
	if !h.Here(address) {
		return nil, nil
	}
	path := address.Path
	if address.Scheme != "ssh" {
		path = strings.TrimPrefix(path, h.Site.Path)
	}
	name, _, _ := strings.Cut(path, "/-/") // the rest is a page of the project
	name = strings.TrimSuffix(strings.Trim(name, "/"), ".git")
	if !gitprovider.ValidRepository(name) {
		return nil, nil
	}
	found, err := h.Repository(ctx, name)
	switch {
	case gitprovider.ReasonOf(err) == gitprovider.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []gitprovider.Repository{found}, nil
}

func (h *host) Repository(ctx context.Context, name string) (gitprovider.Repository, error) {
	var p listed
	if _, err := h.Get(ctx, project(name), nil, &p); err != nil {
		return gitprovider.Repository{}, err
	}
	return p.repository(), nil
}

func (h *host) Branches(ctx context.Context, repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	query := call.PageQuery(q.Page, q.PerPage)
	if q.Query != "" {
		query.Set("search", q.Query)
	}
	var found []struct {
		Name      string
		Protected bool
		Commit    struct {
			ID          string
			CommittedAt time.Time `json:"committed_date"`
		}
	}
	answer, err := h.Get(ctx, project(repository, "repository", "branches"), query, &found)
	if err != nil {
		return gitprovider.Branches{}, err
	}
	out := gitprovider.Branches{More: answer.NextPage() != 0, Total: -1}
	if total, err := strconv.Atoi(answer.Header.Get("X-Total")); err == nil { // omitted if counting is too expensive
		out.Total = total
	}
	for _, b := range found {
		out.Items = append(out.Items, gitprovider.Branch{Name: b.Name, Commit: b.Commit.ID, Protected: b.Protected, PushedAt: b.Commit.CommittedAt})
	}
	return out, nil
}
