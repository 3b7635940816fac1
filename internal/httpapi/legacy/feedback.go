package legacy

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"deckhand/api"
	"deckhand/internal/feedback"
	"deckhand/internal/httpapi/rest"
)

const aboutFeedback = "Feedback is stored on this server for its operator. Neither the feedback nor the conversation is sent elsewhere."

// opinions is the store of feedback, if this server has one.
func (d *Handlers) opinions() (feedback.Store, error) {
	if d.Feedback == nil {
		return nil, rest.Fail(http.StatusNotFound, api.CodeNotFound, "Feedback is not enabled on this server.")
	}
	return d.Feedback, nil
}

func (d *Handlers) submitFeedback(ctx context.Context, c *rest.Call, p rest.InConversation, b api.SubmitFeedback) (api.FeedbackStored, error) {
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.FeedbackStored{}, err
	}
	store, err := d.opinions()
	if err != nil {
		return api.FeedbackStored{}, err
	}
	permissions, given := b.Permissions.Get()
	if !given {
		permissions = "private"
	}
	e, err := store.Add(ctx, feedback.Entry{User: c.Who.User, Session: string(row.ID), At: time.Now(),
		Polarity: b.Polarity, Permissions: permissions, Email: b.Email.Value, Version: b.Version.Value})
	return api.FeedbackStored{StatusCode: http.StatusOK, Body: api.FeedbackBody{Message: "Feedback stored", FeedbackID: strconv.FormatInt(e.ID, 10)}}, err
}

// MaxMetadata is what a client may send along with a rating.
const MaxMetadata = 10_000

func (d *Handlers) rateConversation(ctx context.Context, c *rest.Call, _ rest.None, b api.RateConversation) (api.Rated, error) {
	row, err := d.row(ctx, c, b.ConversationID)
	if err != nil {
		return api.Rated{}, err
	}
	if b.EventID.Value > row.Last {
		return api.Rated{}, api.Invalid("value_error", "The conversation has no event with this number.", "event_id")
	}
	var metadata []byte
	if m, ok := b.Metadata.Get(); ok {
		if metadata, err = json.Marshal(m); err != nil || len(metadata) > MaxMetadata {
			return api.Rated{}, api.Invalid("too_long", "Must be at most 10,000 bytes.", "metadata")
		}
	}
	store, err := d.opinions()
	if err != nil {
		return api.Rated{}, err
	}
	_, err = store.Add(ctx, feedback.Entry{User: c.Who.User, Session: string(row.ID), At: time.Now(),
		Rating: b.Rating, Event: b.EventID.Value, Reason: b.Reason.Value, Metadata: metadata})
	return api.Rated{Status: "success", Message: "Feedback stored"}, err
}

// ratings are the asker's own stars in a conversation of theirs.
func (d *Handlers) ratings(ctx context.Context, c *rest.Call, id string) ([]feedback.Entry, error) {
	row, err := d.row(ctx, c, id)
	if err != nil {
		return nil, err
	}
	store, err := d.opinions()
	if err != nil {
		return nil, err
	}
	return store.Ratings(ctx, c.Who.User, string(row.ID))
}

func (d *Handlers) listRatings(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (map[string]api.Rating, error) {
	found, err := d.ratings(ctx, c, p.ID)
	out := map[string]api.Rating{}
	for _, e := range found {
		if e.Event > 0 {
			out[strconv.FormatInt(e.Event, 10)] = ratingView(e)
		}
	}
	return out, err
}

type ratingPath struct {
	ID    string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Event int64  `path:"event_id" minimum:"0" doc:"Number of the event; 0: the whole conversation."`
}

func (d *Handlers) getRating(ctx context.Context, c *rest.Call, p ratingPath, _ rest.None) (api.Rating, error) {
	found, err := d.ratings(ctx, c, p.ID)
	for _, e := range found {
		if e.Event == p.Event {
			return ratingView(e), err
		}
	}
	return api.Rating{}, err
}

func ratingView(e feedback.Entry) api.Rating {
	return api.Rating{Exists: true, Rating: e.Rating, Reason: e.Reason, Metadata: e.Metadata}
}

type feedbackQuery struct {
	Before int64 `query:"before" default:"0" minimum:"0" doc:"Cursor: next of the previous page."`
	Limit  int64 `query:"limit" default:"20" minimum:"1" maximum:"100"`
}

// listFeedback lists the feedback of all users; the route needs an admin key.
func (d *Handlers) listFeedback(ctx context.Context, _ *rest.Call, q feedbackQuery, _ rest.None) (api.FeedbackPage, error) {
	out := api.FeedbackPage{Feedback: []api.Feedback{}}
	store, err := d.opinions()
	if err != nil {
		return out, err
	}
	limit := int(q.Limit)
	found, err := store.Page(ctx, q.Before, limit+1)
	if len(found) > limit {
		found = found[:limit]
		out.Next = new(found[limit-1].ID)
	}
	for _, e := range found {
		v := api.Feedback{ID: e.ID, User: e.User, ConversationID: e.Session, CreatedAt: e.At, Reason: e.Reason, Metadata: e.Metadata,
			Polarity: e.Polarity, Permissions: e.Permissions, Email: e.Email, Version: e.Version}
		if e.Rating > 0 {
			v.Rating = &e.Rating
		}
		if e.Event > 0 {
			v.EventID = &e.Event
		}
		out.Feedback = append(out.Feedback, v)
	}
	return out, err
}
