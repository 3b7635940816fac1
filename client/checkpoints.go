package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"deckhand/api"
)

// Checkpoints lists the states to which the files of a conversation can be restored.
func (c *Client) Checkpoints(ctx context.Context, id string) (api.Checkpoints, error) {
	return call[api.Checkpoints](ctx, c, http.MethodGet, item(id)+"/checkpoints", nil)
}

// Restore restores files, the conversation or both to the point after an event. If the user changed some of the files too,
// the Conflict of the *Error has them.
func (c *Client) Restore(ctx context.Context, id string, in api.RestoreConversation) (api.Restored, error) {
	return call[api.Restored](ctx, c, http.MethodPost, item(id)+"/restore", in)
}

// UndoRestore takes back the last restore.
func (c *Client) UndoRestore(ctx context.Context, id string, in api.UndoRestore) (api.Restored, error) {
	return call[api.Restored](ctx, c, http.MethodPost, item(id)+"/restore/undo", in)
}

// RedoRestore takes back the last undo.
func (c *Client) RedoRestore(ctx context.Context, id string, in api.UndoRestore) (api.Restored, error) {
	return call[api.Restored](ctx, c, http.MethodPost, item(id)+"/restore/redo", in)
}

// Side is one side of a comparison: the files of a conversation after an event, or now if it is 0.
type Side struct {
	ID    string
	Event int64
}

// Compare lists the files that differ between two sides. A renamed file is one deleted and one added file; see CompareRenames.
func (c *Client) Compare(ctx context.Context, this, other Side) (api.Comparison, error) {
	return call[api.Comparison](ctx, c, http.MethodGet, item(this.ID)+"/compare?"+sides(this, other).Encode(), nil)
}

// CompareRenames is Compare with renamed files as such.
func (c *Client) CompareRenames(ctx context.Context, this, other Side) (api.Comparison, error) {
	q := sides(this, other)
	q.Set("renames", "true")
	return call[api.Comparison](ctx, c, http.MethodGet, item(this.ID)+"/compare?"+q.Encode(), nil)
}

// CompareFile reads a file on both sides.
func (c *Client) CompareFile(ctx context.Context, this, other Side, path string) (api.FileComparison, error) {
	q := sides(this, other)
	q.Set("path", path)
	return call[api.FileComparison](ctx, c, http.MethodGet, item(this.ID)+"/compare/file?"+q.Encode(), nil)
}

// CompareRenamed reads a renamed file on both sides; from is its path on this side.
func (c *Client) CompareRenamed(ctx context.Context, this, other Side, path, from string) (api.FileComparison, error) {
	q := sides(this, other)
	q.Set("path", path)
	q.Set("from", from)
	return call[api.FileComparison](ctx, c, http.MethodGet, item(this.ID)+"/compare/file?"+q.Encode(), nil)
}

func sides(this, other Side) url.Values {
	return url.Values{"event_id": {strconv.FormatInt(this.Event, 10)}, "other": {other.ID}, "other_event_id": {strconv.FormatInt(other.Event, 10)}}
}
