package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// maxBranchPages limits a search to 1,000 branches.
const maxBranchPages = 20

func (p *provider) Branches(ctx context.Context, name string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	if q.Query != "" {
		return p.searchBranches(ctx, name, q)
	}
	path, err := p.below(name, "/branches")
	if err != nil {
		return gitprovider.Branches{}, err
	}
	var found []branch
	answer, err := p.call.Get(ctx, path, pageQuery(q.Page, q.PerPage), &found)
	if err != nil {
		return gitprovider.Branches{}, err
	}
	out := gitprovider.Branches{More: answer.NextPage() > 0, Total: -1}
	if total, err := strconv.Atoi(answer.Header.Get("X-Total-Count")); err == nil && total >= 0 {
		out.Total = total
	}
	for _, b := range found {
		out.Items = append(out.Items, b.read())
	}
	return out, nil
}

// searchBranches filters the list of branches, because the API has no search.
func (p *provider) searchBranches(ctx context.Context, name string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	found, err := all[branch](ctx, p, name, "/branches", maxBranchPages)
	if err != nil {
		return gitprovider.Branches{}, err
	}
	var fit []gitprovider.Branch
	wanted := strings.ToLower(q.Query)
	for _, b := range found {
		if strings.Contains(strings.ToLower(b.Name), wanted) {
			fit = append(fit, b.read())
		}
	}
	size := call.PageSize(q.PerPage)
	from := min((max(q.Page, 1)-1)*size, len(fit))
	to := min(from+size, len(fit))
	return gitprovider.Branches{Items: fit[from:to], More: to < len(fit), Total: len(fit)}, nil
}

// Folder distinguishes files from folders by the response: an object for a file, a list
// for a folder.
func (p *provider) Folder(ctx context.Context, name, ref, path string) ([]gitprovider.File, error) {
	var answer json.RawMessage
	if err := p.get(ctx, name, "/contents"+inside(path), refQuery(ref), &answer); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(answer, []byte("{")) {
		return nil, p.call.Fail(gitprovider.NotFound, "")
	}
	var entries []entry
	if json.Unmarshal(answer, &entries) != nil {
		return nil, p.call.Fail(gitprovider.Unavailable, "")
	}
	var out []gitprovider.File
	for _, e := range entries {
		out = append(out, gitprovider.File{Name: e.Name, Path: e.Path, Folder: e.Type == "dir"})
	}
	return out, nil
}

func (p *provider) File(ctx context.Context, name, ref, path string) ([]byte, error) {
	address, err := p.below(name, "/raw"+inside(path))
	if err != nil {
		return nil, err
	}
	body, _, err := p.call.Raw(ctx, call.Request{Path: address, Query: refQuery(ref), Accept: "*/*"})
	return body, err
}

// inside returns the route of a path in a repository; the root has none.
func inside(path string) string {
	if strings.Trim(path, "/") == "" {
		return ""
	}
	return call.Segments(path)
}

func refQuery(ref string) url.Values {
	if ref == "" {
		return nil
	}
	return url.Values{"ref": {ref}}
}
