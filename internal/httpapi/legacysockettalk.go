package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/socketio"
	"deckhand/internal/v0"
)

// event does what a client wants, and says whether it was done: in the
// acknowledgement if one was asked for, else only if it was not.
func (l *listener) event(ctx context.Context, e socketio.Event) {
	err := l.fulfil(ctx, e)
	var f *fault
	if err != nil {
		if f = translate(err); f.status >= 500 {
			l.door.Logger.Error("event failed", "session", l.id, "error", err)
		}
	}
	switch { // a client that is gone needs no answer
	case e.Ack != nil && f == nil:
		_ = e.Ack(ctx, api.Accepted{Success: true})
	case e.Ack != nil:
		_ = e.Ack(ctx, json.RawMessage(v0.Problem(f.msg)))
	case f != nil:
		_ = l.tell(ctx, f.msg)
	}
}

func (l *listener) fulfil(ctx context.Context, e socketio.Event) error {
	switch {
	case e.Name != "oh_user_action" && e.Name != "oh_action":
		return fail(http.StatusBadRequest, api.CodeBadRequest, "A client may emit oh_user_action, or oh_action, which is the same.")
	case len(e.Args) != 1 || len(e.Attachments) > 0:
		return fail(http.StatusBadRequest, api.CodeBadRequest, e.Name+" takes one argument, which is an action as a JSON object.")
	}
	l.door.lastUsed.Store(time.Now().UnixNano())
	if !l.door.Unlimited {
		if a := l.door.Gate.Allow(l.call.who.KeyID, time.Now()); !a.OK {
			return tooMany(a, "Too many requests with this key.")
		}
	}
	in, err := parseIntent(e.Args[0])
	if err != nil {
		return err
	}
	if len(in.Message.Images) > 0 {
		if err := l.door.checkSight(ctx, l.call.who.User); err != nil {
			return err
		}
	}
	if err := l.door.fulfil(ctx, l.call, string(l.id), in); !errors.Is(err, session.ErrDuplicate) {
		return err
	}
	return nil
}

// checkSight refuses images for a model that cannot see them.
func (d *Door) checkSight(ctx context.Context, user string) error {
	if d.Models.Blind == nil {
		return nil
	}
	model := d.Models.Default
	err := d.Settings.Read(ctx, user, func(s *settings.Settings) {
		if deref(s.LLMModel) != "" {
			model = *s.LLMModel
		}
	})
	if err != nil {
		return settingsMissing(err)
	}
	if why := d.Models.Blind(model); why != "" {
		return fail(http.StatusBadRequest, api.CodeBadRequest, why)
	}
	return nil
}
