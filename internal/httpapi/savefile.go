package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"deckhand/api"
	"deckhand/internal/sandbox"
)

const aboutSaveFile = "The file is replaced in one go, so that nobody ever reads half of it, and keeps its permissions; folders that are missing are made. " +
	"With the etag that select-file gave, it is only replaced if it still has the content of then; without one (null) only a file is made that is not there yet. Otherwise nothing is written and the answer is a 409. " +
	"The request may have 16 MiB. The sandbox is started for it if need be. " + aboutNames

// saveFile writes a file of the workspace, unless somebody else did meanwhile.
func saveFile(d *Door, ctx context.Context, c *call, p one, b api.SaveFile) (api.SavedFile, error) {
	file, err := inWorkspace("path", b.Path)
	if err != nil {
		return api.SavedFile{}, inBody(err)
	}
	id, err := d.workspaceOf(ctx, c, p.ID)
	if err != nil {
		return api.SavedFile{}, err
	}
	etag, given := b.ETag.Get()
	ctx, release := d.hold(ctx, c)
	defer release()
	box, leave, err := d.Workspaces.Use(ctx, id)
	if err != nil {
		return api.SavedFile{}, whyEnded(ctx, err)
	}
	defer leave()
	_, err = box.Write(ctx, sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte(file), Within: true}, New: !given, Match: etag}, strings.NewReader(b.Content))
	switch {
	case errors.Is(err, sandbox.ErrChanged):
		return api.SavedFile{}, fail(http.StatusConflict, api.CodeConflict, "The file was changed since you read it. Read it again, and then save your changes.")
	case errors.Is(err, fs.ErrExist):
		return api.SavedFile{}, fail(http.StatusConflict, api.CodeConflict, "There is a file of this name already. Read it first.")
	case errors.Is(err, fs.ErrPermission):
		return api.SavedFile{}, fail(http.StatusForbidden, api.CodeForbidden, "The permissions of the workspace do not allow it.")
	case err != nil:
		return api.SavedFile{}, inBody(fileFault(whyEnded(ctx, err), "path", "a regular file"))
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
