package gitlab

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"deckhand/internal/gitprovider"
)

// mostFolderPages limits a folder to 1,000 entries.
const mostFolderPages = 10

func (h *host) Folder(ctx context.Context, repository, ref, path string) ([]gitprovider.File, error) {
	path = strings.Trim(path, "/")
	query := url.Values{"path": {path}, "ref": {cmp.Or(ref, "HEAD")}}
	type entry struct{ Name, Path, Type string }
	entries, err := all[entry](ctx, h.Caller, project(repository, "repository", "tree"), query, mostFolderPages)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 && path != "" { // older versions report a missing folder as empty
		return nil, h.Fail(gitprovider.NotFound, "")
	}
	var files []gitprovider.File
	for _, e := range entries {
		if e.Type == "blob" || e.Type == "tree" { // not a submodule
			files = append(files, gitprovider.File{Name: e.Name, Path: e.Path, Folder: e.Type == "tree"})
		}
	}
	return files, nil
}

// File reads the content from JSON instead of raw, so that a login page in front of the
// host is never mistaken for a file.
func (h *host) File(ctx context.Context, repository, ref, path string) ([]byte, error) {
	var file struct{ Content []byte } // base64, as encoding/json expects
	at := project(repository, "repository", "files", strings.Trim(path, "/"))
	_, err := h.Get(ctx, at, url.Values{"ref": {cmp.Or(ref, "HEAD")}}, &file)
	return file.Content, err
}
