package files

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// aboutPaths explains how file names are escaped. aboutNames is for operations that only read.
const (
	aboutPaths = "File names are not escaped, except that a byte that is not valid UTF-8 is written as %XX, and a percent sign before 25 or before two hex digits from 80 to FF as %25; " +
		"all operations accept names in this form."
	aboutNames = aboutPaths + " Does not start the sandbox."
)

// WorkspaceOf finds a conversation of the asker's that may have a workspace.
func (d *Handlers) WorkspaceOf(ctx context.Context, c *rest.Call, id string) (session.ID, error) {
	row, err := d.Conversations.Row(ctx, c.Who.User, session.ID(id))
	if err != nil {
		return "", err
	}
	if d.Workspaces == nil {
		return "", workspace.ErrNone
	}
	return row.ID, nil
}

// view looks into the workspace of a conversation of the asker's. It starts nothing.
func (d *Handlers) view(ctx context.Context, c *rest.Call, id string) (*workspace.View, error) {
	found, err := d.WorkspaceOf(ctx, c, id)
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
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "File or folder not found in the workspace.")
	case errors.Is(err, fs.ErrPermission):
		return rest.Fail(http.StatusForbidden, api.CodeForbidden, "Permission denied: the file cannot be read.")
	case errors.Is(err, sandbox.ErrTooBig):
		return rest.Fail(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "The file is too large to show. Download it instead.")
	}
	return err
}

func (d *Handlers) listPorts(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) ([]api.Port, error) {
	id, err := d.WorkspaceOf(ctx, c, p.ID)
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

func (d *Handlers) getRuntimeConfig(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.RuntimeConfig, error) {
	id, err := d.WorkspaceOf(ctx, c, p.ID)
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
		out.RuntimeID = rest.OrNull(h.ID)
	}
	return out, nil
}
