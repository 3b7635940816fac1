package conversations

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

const aboutTrajectory = "Returns all events up to the newest one at the time of the request. Events are read while they are sent: on an error the connection is closed before the end. " +
	"Hidden commands, screenshots and page trees are omitted. To replay the trajectory, send the array as a string in replay_json."

// getTrajectory sends the whole log. However long it is, one event at a time is in memory.
func (d *Handlers) getTrajectory(w http.ResponseWriter, r *http.Request, c *rest.Call, p rest.InConversation) error {
	ctx, release := d.Life.Hold(r.Context(), c.Who)
	defer release()
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return rest.WhyEnded(ctx, err)
	}
	hidden, err := d.Queries.HiddenCalls(ctx, row)
	if err != nil {
		return rest.WhyEnded(ctx, err)
	}
	out := rest.NewDownload(w, "application/json")
	out.Opening = `{"trajectory":[`
	if r.Method == http.MethodHead {
		return out.All(func() error { return nil })
	}
	return rest.WhyEnded(ctx, out.All(func() error {
		if err := d.sendEvents(ctx, row, hidden, out); err != nil {
			return err
		}
		return out.Put(`]}`)
	}))
}

func (d *Handlers) sendEvents(ctx context.Context, row session.Row, hidden map[int64]bool, out *rest.Download) error {
	first := true
	for e, err := range d.Log.Read(ctx, row.ID, 0) {
		if err != nil {
			return err
		}
		if e.Number > row.Last {
			return nil
		}
		if hidden[e.Number] {
			continue
		}
		event, err := v0.Export(row.ID, e)
		if err != nil {
			return err
		}
		if event == nil {
			continue
		}
		if event, err = d.Queries.Masked(ctx, row.Owner, event); err != nil {
			return err
		}
		if !first {
			event = append([]byte{','}, event...)
		}
		first = false
		if _, err := out.Write(event); err != nil {
			return err
		}
	}
	return nil
}

func describeTrajectory(r huma.Registry, o *huma.Operation) {
	o.Responses["200"] = &huma.Response{Description: "Success", Content: rest.JSONContent(r.Schema(reflect.TypeFor[api.Trajectory](), true, ""))}
}
