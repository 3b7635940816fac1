package bitbucket

import (
	"context"
	"net/url"
	"path"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// cloudEntry is a file or a folder.
type cloudEntry struct{ Path, Type string }

const (
	cloudFolder = "commit_directory"
	cloudFile   = "commit_file"
)

// source returns the path of a file or folder at a ref. Bitbucket cannot parse refs with
// a slash, so such a branch is replaced by its commit.
func (c *cloud) source(ctx context.Context, repository, ref, file string) (string, error) {
	if ref == "" {
		r, err := c.Repository(ctx, repository)
		if err != nil {
			return "", err
		}
		if r.MainBranch == "" { // empty repository
			return "", c.Fail(gitprovider.NotFound, "")
		}
		ref = r.MainBranch
	}
	if strings.Contains(ref, "/") {
		at, err := c.below(repository, "refs", "branches")
		if err != nil {
			return "", err
		}
		var branch struct{ Target struct{ Hash string } }
		if _, err := c.Get(ctx, at+call.Segments(ref), nil, &branch); err != nil {
			return "", err
		}
		ref = branch.Target.Hash
	}
	at, err := c.below(repository, "src", ref)
	return at + call.Segments(file), err
}

func (c *cloud) Folder(ctx context.Context, repository, ref, folder string) ([]gitprovider.File, error) {
	at, err := c.source(ctx, repository, ref, folder)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(at, "/") { // a file is not found this way
		at += "/"
	}
	entries, _, err := cloudList[cloudEntry](ctx, c, at, nil, 100*mostPages)
	if err != nil {
		return nil, err
	}
	var files []gitprovider.File
	for _, e := range entries {
		if e.Type == cloudFile || e.Type == cloudFolder {
			files = append(files, gitprovider.File{Name: path.Base(e.Path), Path: e.Path, Folder: e.Type == cloudFolder})
		}
	}
	return files, nil
}

// File checks first that it is a file: for a folder, Bitbucket would send a list.
func (c *cloud) File(ctx context.Context, repository, ref, file string) ([]byte, error) {
	at, err := c.source(ctx, repository, ref, file)
	if err != nil {
		return nil, err
	}
	var entry cloudEntry
	if _, err := c.Get(ctx, at, url.Values{"format": {"meta"}}, &entry); err != nil {
		return nil, err
	}
	if entry.Type != cloudFile {
		return nil, c.Fail(gitprovider.NotFound, "")
	}
	content, _, err := c.Raw(ctx, call.Request{Path: at, Accept: "*/*"})
	return content, err
}
