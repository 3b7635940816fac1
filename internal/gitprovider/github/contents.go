package github

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net/url"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// contents returns the request for a path of a repository.
func (g *github) contents(repository, ref, path string) (call.Request, error) {
	base, err := g.repository(repository, "contents")
	if err != nil {
		return call.Request{}, err
	}
	if path = strings.Trim(path, "/"); path != "" {
		if !fs.ValidPath(path) {
			return call.Request{}, g.Fail(gitprovider.NotFound, "")
		}
		base += call.Segments(path)
	}
	r := call.Request{Path: base}
	if ref != "" {
		r.Query = url.Values{"ref": {ref}}
	}
	return r, nil
}

func (g *github) Folder(ctx context.Context, repository, ref, path string) ([]gitprovider.File, error) {
	r, err := g.contents(repository, ref, path)
	if err != nil {
		return nil, err
	}
	var answer json.RawMessage
	if _, err := g.Do(ctx, r, &answer); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(answer, []byte("{")) { // a file
		return nil, g.Fail(gitprovider.NotFound, "")
	}
	var entries []struct {
		Name string `json:"name"`
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if json.Unmarshal(answer, &entries) != nil {
		return nil, g.Fail(gitprovider.Unavailable, "")
	}
	var files []gitprovider.File
	for _, e := range entries {
		if e.Type == "file" || e.Type == "dir" { // links and submodules cannot be read
			files = append(files, gitprovider.File{Name: e.Name, Path: e.Path, Folder: e.Type == "dir"})
		}
	}
	return files, nil
}

func (g *github) File(ctx context.Context, repository, ref, path string) ([]byte, error) {
	r, err := g.contents(repository, ref, path)
	if err != nil {
		return nil, err
	}
	r.Accept = "application/vnd.github.raw+json"
	content, answer, err := g.Raw(ctx, r)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") { // a folder has no raw content
		return nil, g.Fail(gitprovider.NotFound, "")
	}
	return content, nil
}
