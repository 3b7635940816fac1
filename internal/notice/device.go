package notice

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"deckhand/internal/notify"
	"deckhand/internal/notify/push"
	"deckhand/internal/queue"
)

// Device is a browser that a user subscribed with.
type Device struct {
	ID, Description string
	// Service is the host of the browser's push service.
	Service   string
	CreatedAt time.Time
	// Disabled is the reason why it is disabled; "" if it is not.
	Disabled string
}

// AddDevice subscribes a browser, or updates its subscription. A browser that another user
// subscribed is reassigned to this one: the last user to log in there gets the notices.
func (s *Service) AddDevice(ctx context.Context, user, description string, sub push.Subscription) (Device, error) {
	if err := notify.CheckURL(sub.Endpoint); err != nil {
		return Device{}, &notify.InvalidError{Field: "endpoint", Msg: err.Error()}
	}
	if u, err := url.Parse(sub.Endpoint); err == nil && s.CheckURL != nil {
		if err := s.CheckURL(ctx, u); err != nil {
			return Device{}, &notify.InvalidError{Field: "endpoint", Msg: "the server may not connect to this address: " + err.Error()}
		}
	}
	if field, err := sub.CheckKeys(); err != nil {
		return Device{}, &notify.InvalidError{Field: "keys." + field, Msg: err.Error()}
	}
	if s.Redact != nil {
		s.Redact(sub.Endpoint, sub.Auth)
	}
	now := queue.Now()
	w := notify.Webhook{ID: s.id(notify.KindPush, sub.Endpoint), User: user, Description: description, Events: s.events, Enabled: true, CreatedAt: now, ChangedAt: now}
	var err error
	if w.Sealed, err = s.seal(ctx, w, sub); err != nil {
		return Device{}, err
	}
	if err := s.Receivers.AddWebhook(ctx, w); err != nil {
		return Device{}, err
	}
	return view(w, sub), nil
}

// Devices lists a user's devices, oldest first.
func (s *Service) Devices(ctx context.Context, user string) ([]Device, error) {
	found, err := s.Receivers.Webhooks(ctx, user, notify.KindPush)
	out := []Device{}
	for _, w := range found {
		var sub push.Subscription
		if err == nil {
			err = s.open(ctx, w, &sub)
		}
		out = append(out, view(w, sub))
	}
	return out, err
}

func view(w notify.Webhook, sub push.Subscription) Device {
	d := Device{ID: w.ID, Description: w.Description, CreatedAt: w.CreatedAt, Disabled: w.Health.Disabled}
	if u, err := url.Parse(sub.Endpoint); err == nil {
		d.Service = u.Hostname()
	}
	return d
}

// RemoveDevice removes a user's device; notify.ErrNotFound.
func (s *Service) RemoveDevice(ctx context.Context, user, id string) error {
	if notify.KindOf(id) != notify.KindPush {
		return notify.ErrNotFound
	}
	return s.Receivers.RemoveWebhook(ctx, user, id)
}

// TestDevice queues a test notice; notify.ErrNotFound, notify.ErrDisabled.
func (s *Service) TestDevice(ctx context.Context, user, id string) error {
	if notify.KindOf(id) != notify.KindPush {
		return notify.ErrNotFound
	}
	_, err := s.Receivers.Queue(ctx, user, notify.ComposeTest(id, queue.NewID(""), queue.Now()))
	return err
}

// seal and open encrypt and decrypt the secrets of a receiver.
func (s *Service) seal(ctx context.Context, w notify.Webhook, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return s.Seal.Seal(ctx, w.User, "notice "+w.ID, b)
}

func (s *Service) open(ctx context.Context, w notify.Webhook, v any) error {
	b, err := s.Seal.Open(ctx, w.User, "notice "+w.ID, w.Sealed)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	return err
}
