package conversations

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/session"
)

const aboutListStream = "The first event is snapshot with the 20 newest conversations: {\"results\":[…]}. Then conversation for each new or changed conversation, at most four times a second each, " +
	"and deleted with the conversation_id. A client that falls far behind gets another snapshot. The stream cannot be resumed: each connection starts with a snapshot."

// streamConversations tells a user what changes in their list.
func (d *Handlers) streamConversations(w http.ResponseWriter, r *http.Request, c *rest.Call) error {
	ctx, detach, release := d.Life.HoldStream(w, r, c)
	defer release()
	err := live.ServeList(w, r.WithContext(ctx), d.lists, c.Who.User, live.Options{Detach: detach})
	return streamError(ctx, err)
}

// encodeRow is a row as all lists show it.
func (d *Handlers) encodeRow(r session.Row) ([]byte, error) {
	return json.Marshal(d.Queries.Describe(r), json.Deterministic(true))
}

func describeListStream(o *huma.Operation) {
	o.Responses["200"] = &huma.Response{Description: "Server-sent events",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}
}
