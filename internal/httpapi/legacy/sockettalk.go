package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/status"
	"deckhand/internal/socketio"
	v0 "deckhand/internal/v0"
)

// event does what a client wants, and says whether it was done: in the
// acknowledgement if one was asked for, else only if it was not.
func (l *listener) event(ctx context.Context, e socketio.Event) {
	err := l.fulfil(ctx, e)
	var f *rest.Fault
	if err != nil {
		if f = status.Of(err); f.Status >= 500 {
			l.api.Logger.ErrorContext(ctx, "event failed", "session", l.id, "error", err)
		}
	}
	switch { // a client that is gone needs no answer
	case e.Ack != nil && f == nil:
		_ = e.Ack(ctx, api.Accepted{Success: true})
	case e.Ack != nil:
		_ = e.Ack(ctx, json.RawMessage(v0.Problem(f.Msg, f.Code)))
	case f != nil:
		_ = l.tell(ctx, f.Msg, f.Code)
	}
}

func (l *listener) fulfil(ctx context.Context, e socketio.Event) error {
	switch {
	case e.Name != "oh_user_action" && e.Name != "oh_action":
		return rest.Fail(http.StatusBadRequest, api.CodeBadRequest, "Unknown event. Use oh_user_action or oh_action.")
	case len(e.Args) != 1 || len(e.Attachments) > 0:
		return rest.Fail(http.StatusBadRequest, api.CodeBadRequest, e.Name+" takes one argument: an action as a JSON object.")
	}
	if err := l.valid(ctx); errors.Is(err, access.ErrUnauthorized) {
		return rest.Fail(http.StatusUnauthorized, api.CodeUnauthorized, errSocketKey.Error())
	} else if err != nil {
		return err
	}
	l.api.Used()
	if !l.api.Unlimited {
		if a := l.api.Gate.Allow(l.who.KeyID, time.Now()); !a.OK {
			return rest.TooMany(a, "Too many requests with this key.")
		}
	}
	in, err := v0.ParseIntent(e.Args[0])
	if err != nil {
		return err
	}
	return l.api.Conversations.Act(ctx, l.who.User, l.id, in)
}
