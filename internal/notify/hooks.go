package notify

import (
	"context"
	"errors"
	"slices"

	"deckhand/internal/queue"
	"deckhand/internal/secret"
)

// Hooks manages the users' webhooks. A user sees nothing of another's.
type Hooks struct {
	Store      Store
	Deliveries Deliveries
	Seal       Sealer
	// Redact learns secrets that must not reach a log.
	Redact func(values ...string)
}

// View is a webhook with its address.
type View struct {
	Webhook
	URL string
}

// Change is what a user wants different; nil fields stay.
type Change struct {
	URL          *string
	Events       []string
	Description  *string
	Enabled      *bool
	RotateSecret bool
}

// Create makes a webhook. The secret is not shown again.
func (h *Hooks) Create(ctx context.Context, user string, c Change) (View, secret.Secret, error) {
	now := queue.Now()
	w := Webhook{ID: queue.NewID(string(KindWebhook) + "_"), User: user, Events: AllEvents, Enabled: true, CreatedAt: now, ChangedAt: now}
	t := target{Rotating: secret.NewRotating()}
	if c.URL != nil {
		t.URL = *c.URL
	}
	if err := c.check(t.URL); err != nil {
		return View{}, secret.Secret{}, err
	}
	sealed, err := h.seal(ctx, w, t)
	if err != nil {
		return View{}, secret.Secret{}, err
	}
	c.apply(&w)
	w.Sealed = sealed
	if err := h.Store.AddWebhook(ctx, w); err != nil {
		return View{}, secret.Secret{}, err
	}
	return View{w, t.URL}, secret.New(t.Secret), nil
}

// List gives all of a user's, the oldest first.
func (h *Hooks) List(ctx context.Context, user string) ([]View, error) {
	found, err := h.Store.Webhooks(ctx, user, KindWebhook)
	if err != nil {
		return nil, err
	}
	views := make([]View, 0, len(found))
	for _, w := range found {
		t, err := openTarget(ctx, h.Seal, w)
		if err != nil {
			return nil, err
		}
		views = append(views, View{w, t.URL})
	}
	return views, nil
}

// Get is one of a user's; ErrNotFound.
func (h *Hooks) Get(ctx context.Context, user, id string) (View, error) {
	w, t, err := h.open(ctx, user, id)
	return View{w, t.URL}, err
}

func (h *Hooks) open(ctx context.Context, user, id string) (Webhook, target, error) {
	found, err := h.Store.Webhooks(ctx, user, KindWebhook)
	if err != nil {
		return Webhook{}, target{}, err
	}
	i := slices.IndexFunc(found, func(w Webhook) bool { return w.ID == id })
	if i < 0 {
		return Webhook{}, target{}, ErrNotFound
	}
	t, err := openTarget(ctx, h.Seal, found[i])
	return found[i], t, err
}

// errStale says that a webhook was changed since it was read.
var errStale = errors.New("the webhook was changed at the same time")

// Change changes one. The secret is zero unless a new one was asked for.
// A new address, or being enabled, is a fresh start: what waits is tried at once.
func (h *Hooks) Change(ctx context.Context, user, id string, c Change) (View, secret.Secret, error) {
	for {
		v, shown, err := h.tryChange(ctx, user, id, c)
		if !errors.Is(err, errStale) {
			return v, shown, err
		}
	}
}

func (h *Hooks) tryChange(ctx context.Context, user, id string, c Change) (View, secret.Secret, error) {
	read, t, err := h.open(ctx, user, id)
	if err != nil {
		return View{}, secret.Secret{}, err
	}
	moved := c.URL != nil && *c.URL != t.URL
	if moved {
		t.URL = *c.URL
	}
	if err := c.check(t.URL); err != nil {
		return View{}, secret.Secret{}, err
	}
	now := queue.Now()
	var shown secret.Secret
	if c.RotateSecret {
		t.Rotate(now)
		shown = secret.New(t.Secret)
	}
	sealed, err := h.seal(ctx, read, t)
	if err != nil {
		return View{}, secret.Secret{}, err
	}
	w, err := h.Store.ChangeWebhook(ctx, user, id, now, func(w *Webhook) error {
		if !w.ChangedAt.Equal(read.ChangedAt) {
			return errStale
		}
		if moved || c.Enabled != nil && *c.Enabled {
			w.Health = Health{}
		}
		w.Sealed = sealed
		c.apply(w)
		return nil
	})
	return View{w, t.URL}, shown, err
}

// Remove removes one with the record of its deliveries.
func (h *Hooks) Remove(ctx context.Context, user, id string) error {
	if KindOf(id) != KindWebhook {
		return ErrNotFound
	}
	return h.Store.RemoveWebhook(ctx, user, id)
}

// Page lists deliveries, newest first, below a Seq.
func (h *Hooks) Page(ctx context.Context, user, id string, before int64, limit int) ([]Delivery, error) {
	if KindOf(id) != KindWebhook {
		return nil, ErrNotFound
	}
	return h.Deliveries.Deliveries(ctx, user, id, before, limit)
}

// Test queues a delivery that says nothing. It is tried once.
func (h *Hooks) Test(ctx context.Context, user, id string) (Delivery, error) {
	if KindOf(id) != KindWebhook {
		return Delivery{}, ErrNotFound
	}
	return h.Deliveries.Queue(ctx, user, ComposeTest(id, queue.NewID(""), queue.Now()))
}

// Retry queues a delivery again, whatever became of it.
func (h *Hooks) Retry(ctx context.Context, user, id, delivery string) (Delivery, error) {
	if KindOf(id) != KindWebhook {
		return Delivery{}, ErrNotFound
	}
	return h.Deliveries.Requeue(ctx, user, id, delivery, queue.Now())
}

func (h *Hooks) seal(ctx context.Context, w Webhook, t target) ([]byte, error) {
	if h.Redact != nil {
		h.Redact(t.Secret)
	}
	return sealTarget(ctx, h.Seal, w.User, w.ID, t)
}

func (c Change) check(address string) error {
	if err := CheckURL(address); err != nil {
		return err
	}
	if c.Events != nil {
		if _, err := EventsOf(c.Events); err != nil {
			return err
		}
	}
	return nil
}

// apply sets what needs no sealing. The change was checked.
func (c Change) apply(w *Webhook) {
	if c.Events != nil {
		w.Events, _ = EventsOf(c.Events)
	}
	if c.Description != nil {
		w.Description = *c.Description
	}
	if c.Enabled != nil {
		w.Enabled = *c.Enabled
	}
}
