package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// The errors of their own that routes on a workspace have: those that look into
// it without starting anything, and those that use its sandbox.
var (
	uses    = []int{http.StatusNotFound, http.StatusServiceUnavailable}
	reads   = []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}
	tooMuch = []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}
)

// aboutPaths explains how file names are escaped. aboutNames is for operations that only read.
const (
	aboutPaths = "File names are not escaped, except that a byte that is not valid UTF-8 is written as %XX, and a percent sign before 25 or before two hex digits from 80 to FF as %25; " +
		"all operations accept names in this form."
	aboutNames = aboutPaths + " Does not start the sandbox."
)

// workspaceOf finds a conversation of the asker's that may have a workspace.
func (d *Door) workspaceOf(ctx context.Context, c *call, id string) (session.ID, error) {
	row, err := d.row(ctx, c, id)
	if err != nil {
		return "", err
	}
	if d.Workspaces == nil {
		return "", workspace.ErrNone
	}
	return row.ID, nil
}

// view looks into the workspace of a conversation of the asker's. It starts nothing.
func (d *Door) view(ctx context.Context, c *call, id string) (*workspace.View, error) {
	found, err := d.workspaceOf(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return d.Workspaces.View(ctx, found)
}

// inWorkspace is the path that a parameter means, relative to the workspace.
// What leads out is refused here already; links that do are met by those who
// open them.
func inWorkspace(param, text string) (string, error) {
	p := string(api.DecodeName(text))
	if rest, ok := strings.CutPrefix(p, sandbox.Workspace); ok && (rest == "" || rest[0] == '/') {
		p = strings.TrimLeft(rest, "/") // what upload-files and the agent call it
	}
	p = path.Clean(p)
	if path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") {
		return "", escapes(param)
	}
	return p, nil
}

func escapes(param string) error {
	return badQuery(param, "value_error", "The path is outside the workspace.")
}

func badQuery(param, typ, msg string) error {
	return &api.ValidationError{Detail: []api.FieldError{{Loc: []any{"query", param}, Type: typ, Msg: msg}}}
}

// fileFault says what is wrong with the file that a parameter names. expected is
// what it should have been, as in "a folder".
func fileFault(err error, param, expected string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sandbox.ErrEscapes):
		return escapes(param)
	case errors.Is(err, sandbox.ErrInvalid):
		return badQuery(param, "value_error", "The path is not "+expected+".")
	case errors.Is(err, fs.ErrNotExist):
		return fail(http.StatusNotFound, api.CodeNotFound, "File or folder not found in the workspace.")
	case errors.Is(err, fs.ErrPermission):
		return fail(http.StatusForbidden, api.CodeForbidden, "Permission denied: the file cannot be read.")
	case errors.Is(err, sandbox.ErrTooBig):
		return fail(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "The file is too large to show. Download it instead.")
	}
	return err
}

// whyEnded is what to answer when a request that is held failed: it may have
// ended with its key, or with the server.
func whyEnded(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, access.ErrRevoked):
		return unauthorized()
	case errors.Is(cause, errClosing):
		return fail(http.StatusServiceUnavailable, api.CodeUnavailable, "The server is stopping. Try again.")
	}
	return err
}

func listPorts(d *Door, ctx context.Context, c *call, p one, _ none) ([]api.Port, error) {
	id, err := d.workspaceOf(ctx, c, p.ID)
	if err != nil {
		return nil, err
	}
	found, err := d.Workspaces.Ports(ctx, id)
	out := make([]api.Port, len(found))
	for i, port := range found {
		out[i] = api.Port{Port: port}
	}
	return out, err
}

func getRuntimeConfig(d *Door, ctx context.Context, c *call, p one, _ none) (api.RuntimeConfig, error) {
	id, err := d.workspaceOf(ctx, c, p.ID)
	if err != nil {
		return api.RuntimeConfig{}, err
	}
	st, err := d.Sessions.Load(ctx, id)
	if err != nil {
		return api.RuntimeConfig{}, err
	}
	out := api.RuntimeConfig{SessionID: string(id)}
	var h sandbox.Handle
	if len(st.Handle) > 0 && json.Unmarshal(st.Handle, &h) == nil {
		out.RuntimeID = text(h.ID)
	}
	return out, nil
}
