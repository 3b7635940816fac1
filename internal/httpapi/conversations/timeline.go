package conversations

import (
	"context"
	"time"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/timeline"
)

const aboutTimeline = "Computed from the event log and paginated by turns. Each page has the time spans since the turn before it; " +
	"the last page also has those after the last turn. Spans without duration are omitted."

type timelineQuery struct {
	ID    string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	After int64  `query:"after" default:"0" minimum:"0" doc:"Cursor: event_id of the last turn of the previous page."`
	Limit int64  `query:"limit" default:"100" minimum:"1" maximum:"500" doc:"Maximum number of turns."`
}

// getTimeline reads the log once, one event at a time.
func (d *Handlers) getTimeline(ctx context.Context, c *rest.Call, q timelineQuery, _ rest.None) (api.Timeline, error) {
	row, err := d.row(ctx, c, q.ID)
	if err != nil {
		return api.Timeline{}, err
	}
	t := timeline.New(q.After, int(q.Limit))
	for e, err := range d.Log.Read(ctx, row.ID, 0) {
		if err != nil {
			return api.Timeline{}, err
		}
		if e.Number > row.Last {
			break
		}
		t.Add(e)
	}
	return t.End(time.Now().UTC()), nil
}
