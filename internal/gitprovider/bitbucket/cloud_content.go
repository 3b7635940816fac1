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

// source is the path of a file or folder at a ref. Bitbucket takes a slash in
// the ref for the beginning of the path: such a branch goes by its commit.
func (c *cloud) source(ctx context.Context, repository, ref, file string) (string, error) {
	if ref == "" {
		r, err := c.Repository(ctx, repository)
		if err != nil {
			return "", err
		}
		if r.MainBranch == "" { // nothing was pushed yet
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
	if !strings.HasSuffix(at, "/") { // of a file this finds nothing
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

// File asks first whether it is one: of a folder Bitbucket would send a list.
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
