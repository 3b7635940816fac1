package bitbucket

import (
	"context"
	"net/url"
	"path"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// centerProject holds repositories.
type centerProject struct {
	Key    string
	Type   string // NORMAL or PERSONAL
	Public bool
}

// centerRepository is a repository in Data Center's API.
type centerRepository struct {
	ID      int64
	Slug    string
	Public  bool
	Project centerProject
}

func (r centerRepository) name() string { return r.Project.Key + "/" + r.Slug }

func (r centerRepository) repository() gitprovider.Repository {
	return gitprovider.Repository{
		ID: strconv.FormatInt(r.ID, 10), Name: r.name(), Public: r.Public || r.Project.Public,
		Owner: map[string]string{"PERSONAL": "user", "NORMAL": "organization"}[r.Project.Type],
	}
}

// Repositories are sorted by name: a Data Center has no other order.
func (d *dataCenter) Repositories(ctx context.Context, q gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
	q.Page, q.PerPage = pageNumber(q.Page), call.PageSize(q.PerPage)
	at := "/repos"
	if q.Installation != "" {
		at = call.Path("projects", q.Installation, "repos")
	}
	found, more, err := centerList[centerRepository](ctx, d, at, nil, q.Page*q.PerPage)
	if err != nil {
		return gitprovider.Repositories{}, err
	}
	var items []gitprovider.Repository
	for _, r := range window(found, q.Page, q.PerPage) {
		items = append(items, r.repository())
	}
	return nextAfter(q.Page, items, more), nil
}

// Search finds repositories by a part of the name. A text with a slash names the project.
func (d *dataCenter) Search(ctx context.Context, q gitprovider.SearchQuery) ([]gitprovider.Repository, error) {
	if address, ok := call.Pasted(q.Text); ok {
		return d.pasted(ctx, address)
	}
	query := url.Values{"name": {q.Text}}
	if key, part, ok := strings.Cut(q.Text, "/"); ok {
		query = url.Values{"projectkey": {key}, "name": {part}}
	}
	found, _, err := centerList[centerRepository](ctx, d, "/repos", query, call.PageSize(q.PerPage))
	var items []gitprovider.Repository
	for _, r := range found {
		items = append(items, r.repository())
	}
	return items, err
}

// pasted finds the repository of a URL.
func (d *dataCenter) pasted(ctx context.Context, address *url.URL) ([]gitprovider.Repository, error) {
	name := named(strings.TrimPrefix(address.Path, d.sitePath()))
	if name == "" || !d.Here(address) {
		return nil, nil
	}
	return only(d.Repository(ctx, name))
}

func (d *dataCenter) sitePath() string {
	if d.Site == nil {
		return ""
	}
	return d.Site.Path
}

// named returns the repository name in the path of its page or clone URL, or "".
func named(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	name := ""
	switch {
	case len(parts) >= 4 && parts[0] == "projects" && parts[2] == "repos":
		name = parts[1] + "/" + parts[3]
	case len(parts) >= 4 && parts[0] == "users" && parts[2] == "repos":
		name = "~" + parts[1] + "/" + parts[3]
	case len(parts) == 3 && parts[0] == "scm":
		name = parts[1] + "/" + strings.TrimSuffix(parts[2], ".git")
	case len(parts) == 2 && strings.HasSuffix(parts[1], ".git"): // over ssh
		name = parts[0] + "/" + strings.TrimSuffix(parts[1], ".git")
	}
	if !gitprovider.ValidRepository(name) {
		return ""
	}
	return name
}

func (d *dataCenter) Repository(ctx context.Context, name string) (gitprovider.Repository, error) {
	at, err := d.below(name)
	if err != nil {
		return gitprovider.Repository{}, err
	}
	var r centerRepository
	if _, err := d.Get(ctx, at, nil, &r); err != nil {
		return gitprovider.Repository{}, err
	}
	out := r.repository()
	out.MainBranch, err = d.mainBranch(ctx, at)
	if err != nil {
		return gitprovider.Repository{}, err
	}
	return out, nil
}

// mainBranch uses the route of version 7.5 and later, then the older one. An empty
// repository may have none.
func (d *dataCenter) mainBranch(ctx context.Context, repository string) (string, error) {
	for _, at := range []string{"/default-branch", "/branches/default"} {
		var branch struct{ DisplayID string }
		answer, err := d.Get(ctx, repository+at, nil, &branch)
		switch {
		case err == nil:
			return branch.DisplayID, nil
		case answer.Status == 204:
			return "", nil
		case gitprovider.ReasonOf(err) != gitprovider.NotFound:
			return "", err
		}
	}
	return "", nil
}

// Branches are sorted by their last change. Their times are not requested, because that
// is expensive for the server.
func (d *dataCenter) Branches(ctx context.Context, repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	at, err := d.below(repository, "branches")
	if err != nil {
		return gitprovider.Branches{}, err
	}
	query := url.Values{"orderBy": {"MODIFICATION"}}
	if q.Query != "" {
		query.Set("filterText", q.Query)
	}
	type branch struct{ DisplayID, LatestCommit string }
	page, size := pageNumber(q.Page), call.PageSize(q.PerPage)
	found, more, err := centerList[branch](ctx, d, at, query, page*size)
	if err != nil {
		return gitprovider.Branches{}, err
	}
	out := gitprovider.Branches{More: more, Total: -1}
	for _, b := range window(found, page, size) {
		out.Items = append(out.Items, gitprovider.Branch{Name: b.DisplayID, Commit: b.LatestCommit})
	}
	return out, nil
}

// Folder lists a folder. A folder that contains only a folder is returned as one path;
// only the outer one is used.
func (d *dataCenter) Folder(ctx context.Context, repository, ref, folder string) ([]gitprovider.File, error) {
	at, err := d.below(repository, "browse")
	if err != nil {
		return nil, err
	}
	folder = strings.Trim(folder, "/")
	if folder != "" {
		at += call.Segments(folder)
	}
	type child struct {
		Path struct{ Components []string }
		Type string
	}
	found, _, err := centerWalk(atRef(ref), mostAtOnce, func(query url.Values) (centerPage[child], error) {
		var page struct{ Children *centerPage[child] }
		if _, err := d.Get(ctx, at, query, &page); err != nil {
			return centerPage[child]{}, err
		}
		if page.Children == nil { // a file
			return centerPage[child]{}, d.Fail(gitprovider.NotFound, "")
		}
		return *page.Children, nil
	})
	var files []gitprovider.File
	for _, c := range found {
		if len(c.Path.Components) > 0 && c.Type != "SUBMODULE" {
			name := c.Path.Components[0]
			files = append(files, gitprovider.File{Name: name, Path: path.Join(folder, name), Folder: c.Type == "DIRECTORY"})
		}
	}
	return files, err
}

func (d *dataCenter) File(ctx context.Context, repository, ref, file string) ([]byte, error) {
	at, err := d.below(repository, "raw")
	if err != nil {
		return nil, err
	}
	content, _, err := d.Raw(ctx, call.Request{Path: at + call.Segments(file), Query: atRef(ref), Accept: "*/*"})
	return content, err
}

// atRef returns the query for a ref; "" is the main branch.
func atRef(ref string) url.Values {
	if ref == "" {
		return url.Values{}
	}
	return url.Values{"at": {ref}}
}
