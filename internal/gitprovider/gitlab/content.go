package gitlab

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"deckhand/internal/gitprovider"
)

// mostFolderPages bounds a folder to a thousand entries.
const mostFolderPages = 10

func (h *host) Folder(ctx context.Context, repository, ref, path string) ([]gitprovider.File, error) {
	path = strings.Trim(path, "/")
	query := url.Values{"path": {path}, "ref": {cmp.Or(ref, "HEAD")}}
	type entry struct{ Name, Path, Type string }
	entries, err := all[entry](ctx, h.Caller, project(repository, "repository", "tree"), query, mostFolderPages)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 && path != "" { // git keeps no empty folders: older versions say it like this
		return nil, h.Fail(gitprovider.NotFound, "")
	}
	var files []gitprovider.File
	for _, e := range entries {
		if e.Type == "blob" || e.Type == "tree" { // the third is a submodule
			files = append(files, gitprovider.File{Name: e.Name, Path: e.Path, Folder: e.Type == "tree"})
		}
	}
	return files, nil
}

// File reads the content out of JSON and not raw, so that a sign-on page in
// front of the host is never taken for a file.
func (h *host) File(ctx context.Context, repository, ref, path string) ([]byte, error) {
	var file struct{ Content []byte } // base64, which is also what encoding/json expects
	at := project(repository, "repository", "files", strings.Trim(path, "/"))
	_, err := h.Get(ctx, at, url.Values{"ref": {cmp.Or(ref, "HEAD")}}, &file)
	return file.Content, err
}
