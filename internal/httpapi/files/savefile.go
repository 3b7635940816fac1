package files

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
)

const aboutSaveFile = "The file is replaced atomically and keeps its permissions; missing folders are created. " +
	"With an etag from select-file, the file is replaced only if its content has not changed since; with a null etag, the file is created only if it does not exist. Otherwise nothing is written and the response is a 409. " +
	"The request is limited to 16 MiB. Starts the sandbox if needed. " + aboutPaths

// saveFile writes a workspace file, unless it has changed since it was read.
func (d *Handlers) saveFile(ctx context.Context, c *rest.Call, p rest.InConversation, b api.SaveFile) (api.SavedFile, error) {
	file, err := inWorkspace("path", b.Path)
	if err != nil {
		return api.SavedFile{}, inBody(err)
	}
	id, err := d.WorkspaceOf(ctx, c, p.ID)
	if err != nil {
		return api.SavedFile{}, err
	}
	etag, given := b.ETag.Get()
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	box, leave, err := d.Workspaces.Use(ctx, id)
	if err != nil {
		return api.SavedFile{}, rest.WhyEnded(ctx, err)
	}
	defer leave()
	room, err := d.Workspaces.Room(ctx, id)
	if err != nil {
		return api.SavedFile{}, rest.WhyEnded(ctx, err)
	}
	if room < int64(len(b.Content)) {
		return api.SavedFile{}, rest.Fail(http.StatusInsufficientStorage, api.CodeUnavailable, "The workspace has reached its disk limit. Delete files first.")
	}
	_, err = box.Write(ctx, sandbox.WriteParams{PathParams: sandbox.InWorkspace(file), New: !given, Match: etag}, strings.NewReader(b.Content))
	switch {
	case errors.Is(err, sandbox.ErrChanged):
		return api.SavedFile{}, rest.Fail(http.StatusConflict, api.CodeConflict, "The file has changed since you read it. Read it again, then save your changes.")
	case errors.Is(err, fs.ErrExist):
		return api.SavedFile{}, rest.Fail(http.StatusConflict, api.CodeConflict, "A file with this name already exists. Read it first.")
	case errors.Is(err, fs.ErrPermission):
		return api.SavedFile{}, rest.Fail(http.StatusForbidden, api.CodeForbidden, "Permission denied in the workspace.")
	case err != nil:
		return api.SavedFile{}, inBody(fileFault(rest.WhyEnded(ctx, err), "path", "a regular file"))
	}
	return api.SavedFile{ETag: sandbox.Sum([]byte(b.Content))}, nil
}

// inBody is the same complaint about a field of the body.
func inBody(err error) error {
	var invalid *api.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	out := &api.ValidationError{}
	for _, f := range invalid.Detail {
		f.Loc = append([]any{"body"}, f.Loc[1:]...)
		out.Detail = append(out.Detail, f)
	}
	return out
}
