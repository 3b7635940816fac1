package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"deckhand/internal/access"
	"deckhand/internal/live"
	"deckhand/internal/session"
)

const aboutListStream = "First comes an event snapshot with the 20 newest: {\"results\":[…]}. Then an event conversation for each that is new or changed, at most four times a second each, " +
	"and an event deleted with its conversation_id. A reader that fell far behind gets another snapshot. There are no positions: who comes back begins with a snapshot."

// streamConversations tells a user what changes in their list.
func streamConversations(d *Door, w http.ResponseWriter, r *http.Request, c *call) error {
	ctx, release := d.hold(r.Context(), c)
	defer release()
	err := live.ServeList(w, r.WithContext(ctx), d.lists, c.who.User, live.Options{})
	switch {
	case errors.Is(err, live.ErrNotStarted) && errors.Is(context.Cause(ctx), access.ErrRevoked):
		return unauthorized()
	case errors.Is(err, live.ErrNotStarted):
		return err
	}
	return nil // it began, so its end is between us and the reader
}

// encodeRow is a row as all lists show it.
func (d *Door) encodeRow(r session.Row) ([]byte, error) {
	return json.Marshal(d.describeRow(r), json.Deterministic(true))
}

func describeListStream(o *huma.Operation) {
	o.Responses["200"] = &huma.Response{Description: "A stream of server-sent events.",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}
}
