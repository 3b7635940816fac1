package files

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"deckhand/api"
	"deckhand/internal/gitignore"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/workspace"
)

const aboutListFiles = "Lists one level. Folders come first and end with a slash, then files, both sorted ignoring case. Each name is prefixed with path. " +
	".git/, .DS_Store, node_modules/, __pycache__/, lost+found/, .vscode/ and entries ignored by the workspace's .gitignore are omitted. A symbolic link is listed as a file. " + aboutNames

type listFilesQuery struct {
	ID   string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Path string `query:"path" maxLength:"12288" doc:"Folder, relative to the workspace. Default: the workspace itself."`
}

// unlisted are names that file lists omit. Those of folders end with a slash.
var unlisted = map[string]bool{".git/": true, ".DS_Store": true, "node_modules/": true, "__pycache__/": true, "lost+found/": true, ".vscode/": true}

func (d *Handlers) listFiles(ctx context.Context, c *rest.Call, q listFilesQuery, _ rest.None) ([]string, error) {
	folder, err := inWorkspace("path", q.Path)
	if err != nil {
		return nil, err
	}
	v, err := d.view(ctx, c, q.ID)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	found, err := v.List(ctx, folder)
	if err != nil {
		return nil, fileFault(err, "path", "a folder")
	}
	ignored := ignoredIn(ctx, v)
	type entry struct {
		folder     bool
		lower, all string
	}
	var entries []entry
	for _, f := range found {
		name := string(f.Name)
		if f.IsDir() {
			name += "/"
		}
		at := path.Join(folder, string(f.Name))
		if unlisted[name] || ignored.Hides(at, f.IsDir()) {
			continue
		}
		if folder != "." {
			name = folder + "/" + name
		}
		entries = append(entries, entry{f.IsDir(), strings.ToLower(name), name})
		if ctx.Err() != nil { // a large folder and many patterns take a while
			return nil, ctx.Err()
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.folder != b.folder {
			if a.folder {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.lower, b.lower), cmp.Compare(a.all, b.all))
	})
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = api.EncodeName([]byte(e.all))
	}
	return names, nil
}

// maxIgnore is how large a .gitignore file may be that is obeyed.
const maxIgnore = 256 << 10

// ignoredIn reads the workspace's .gitignore file. Without one that can be read, nothing is hidden.
func ignoredIn(ctx context.Context, v *workspace.View) *gitignore.List {
	var b limited
	b.left = maxIgnore
	if _, err := v.Read(ctx, ".gitignore", &b); err != nil {
		return nil
	}
	return gitignore.Parse(string(b.data))
}

// limited keeps what is written to it, up to a limit.
type limited struct {
	data []byte
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, rest.ErrTooMuch
	}
	l.left -= len(b)
	l.data = append(l.data, b...)
	return len(b), nil
}

const (
	aboutChanges = "Each repository is compared with the first of these that exists: its branch at origin, the merge base with the default branch, the default branch at origin, the empty tree. " +
		"Repositories in top-level folders of the workspace are included. " + aboutNames
	aboutDiff = "Files larger than 1 MB and binary files are refused. " + aboutNames
)

type gitChangesQuery struct {
	ID     string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Absent string `query:"absent" enum:"error,empty" default:"error" doc:"Response if there is no repository or no workspace yet: error returns an error, empty returns an empty list with repository or workspace in the header X-Absent."`
}

// absentHeader tells a list that is empty because there is nothing to compare from one
// that is empty because nothing differs.
const absentHeader = "X-Absent"

func (d *Handlers) gitChanges(ctx context.Context, c *rest.Call, q gitChangesQuery, _ rest.None) ([]api.GitChange, error) {
	v, err := d.view(ctx, c, q.ID)
	if q.Absent == "empty" && errors.Is(err, workspace.ErrNone) {
		c.Header.Set(absentHeader, "workspace")
		return []api.GitChange{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer v.Close()
	found, err := v.Changes(ctx)
	if q.Absent == "empty" && errors.Is(err, sandbox.ErrNoRepo) {
		c.Header.Set(absentHeader, "repository")
		return []api.GitChange{}, nil
	}
	if err != nil {
		return nil, gitFault(err, "")
	}
	out := make([]api.GitChange, len(found))
	for i, f := range found {
		out[i] = api.GitChange{Status: f.Status, Path: api.EncodeName(f.Path)}
	}
	return out, nil
}

type gitDiffQuery struct {
	ID    string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Path  string `query:"path" required:"true" minLength:"1" maxLength:"12288" doc:"File, relative to the workspace."`
	Unfit string `query:"unfit" enum:"error,told" default:"error" doc:"Response for a file that is missing, too large, not text or unreadable: error returns an error, told returns 200 with the reason in the field unfit."`
}

func (d *Handlers) gitDiff(ctx context.Context, c *rest.Call, q gitDiffQuery, _ rest.None) (api.GitDiff, error) {
	file, err := inWorkspace("path", q.Path)
	if err != nil {
		return api.GitDiff{}, err
	}
	v, err := d.view(ctx, c, q.ID)
	if err != nil {
		return api.GitDiff{}, err
	}
	defer v.Close()
	diff, err := v.Diff(ctx, file)
	if err != nil {
		why, err := tell(q.Unfit, gitFault(err, q.Path))
		return api.GitDiff{Unfit: why}, err
	}
	return api.GitDiff{Modified: diff.Modified, Original: diff.Original}, nil
}

func gitFault(err error, file string) error {
	switch {
	case errors.Is(err, sandbox.ErrNoRepo):
		return rest.Fail(http.StatusNotFound, api.CodeNoRepository, "Not a git repository")
	case errors.Is(err, sandbox.ErrBinary):
		return binaryFile(file)
	case errors.Is(err, sandbox.ErrTooBig):
		return rest.Fail(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "The file is too large to compare. The limit is 1 MB.")
	}
	return fileFault(err, "path", "a file of a repository")
}

func binaryFile(name string) error {
	return rest.Fail(http.StatusUnsupportedMediaType, api.CodeBinaryFile, "Unable to open binary file: "+api.EncodeName(api.DecodeName(name)))
}
