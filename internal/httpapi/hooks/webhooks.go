package hooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/notify"
)

const (
	aboutWebhooks = "A webhook receives the event type and the conversation ID, never message contents. Deliveries are signed as described in the Standard " +
		"Webhooks specification, retried about twelve times over three days, and may arrive more than once with the same webhook-id. The secret is shown only once."
	aboutWebhookTest = "The delivery is queued and attempted once. See the webhook's deliveries for the result."
)

// webhookPath names a webhook.
type webhookPath struct {
	ID string `path:"webhook_id" minLength:"1" maxLength:"64"`
}

// deliveryPath names one of its deliveries.
type deliveryPath struct {
	ID       string `path:"webhook_id" minLength:"1" maxLength:"64"`
	Delivery string `path:"delivery_id" minLength:"1" maxLength:"200"`
}

type deliveriesQuery struct {
	ID     string `path:"webhook_id" minLength:"1" maxLength:"64"`
	Before int64  `query:"before" default:"0" minimum:"0" doc:"Cursor: next of the previous page."`
	Limit  int64  `query:"limit" default:"20" minimum:"1" maximum:"100"`
}

// hooks are the webhooks, if this server has any.
func (d *Handlers) hooks() (*notify.Hooks, error) {
	if d.Webhooks == nil {
		return nil, rest.Fail(http.StatusNotFound, api.CodeNotFound, "Webhooks are not enabled on this server.")
	}
	return d.Webhooks, nil
}

// webhookFault gives the errors of webhooks their answers.
func webhookFault(err error) error {
	var invalid *notify.InvalidError
	switch {
	case errors.As(err, &invalid):
		return api.Invalid("value_error", usecase.Sentence(invalid.Msg), invalid.Field)
	case errors.Is(err, notify.ErrNotFound):
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "Not found")
	case errors.Is(err, notify.ErrTooMany):
		return rest.Fail(http.StatusConflict, api.CodeConflict, fmt.Sprintf("You have reached the limit of %d webhooks. Delete one first.", notify.MaxWebhooks))
	case errors.Is(err, notify.ErrDisabled):
		return rest.Fail(http.StatusConflict, api.CodeConflict, "The webhook is disabled. Enable it first.")
	}
	return err
}

func (d *Handlers) listWebhooks(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) ([]api.Webhook, error) {
	h, err := d.hooks()
	if err != nil {
		return nil, err
	}
	found, err := h.List(ctx, c.Who.User)
	out := []api.Webhook{}
	for _, v := range found {
		out = append(out, webhookView(v))
	}
	return out, err
}

func (d *Handlers) createWebhook(ctx context.Context, c *rest.Call, _ rest.None, b api.CreateWebhook) (api.NewWebhook, error) {
	h, err := d.hooks()
	if err != nil {
		return api.NewWebhook{}, err
	}
	change := notify.Change{URL: &b.URL, Events: given(b.Events), Description: orNil(b.Description), Enabled: orNil(b.Enabled)}
	v, secret, err := h.Create(ctx, c.Who.User, change)
	if err != nil {
		return api.NewWebhook{}, webhookFault(err)
	}
	return api.NewWebhook{Webhook: webhookView(v), Secret: secret.Reveal()}, nil
}

func (d *Handlers) getWebhook(ctx context.Context, c *rest.Call, p webhookPath, _ rest.None) (api.Webhook, error) {
	h, err := d.hooks()
	if err != nil {
		return api.Webhook{}, err
	}
	v, err := h.Get(ctx, c.Who.User, p.ID)
	return webhookView(v), webhookFault(err)
}

func (d *Handlers) patchWebhook(ctx context.Context, c *rest.Call, p webhookPath, b api.PatchWebhook) (api.PatchedWebhook, error) {
	h, err := d.hooks()
	if err != nil {
		return api.PatchedWebhook{}, err
	}
	change := notify.Change{URL: orNil(b.URL), Events: given(b.Events), Description: orNil(b.Description), Enabled: orNil(b.Enabled), RotateSecret: b.RotateSecret.Value}
	v, secret, err := h.Change(ctx, c.Who.User, p.ID, change)
	if err != nil {
		return api.PatchedWebhook{}, webhookFault(err)
	}
	return api.PatchedWebhook{Webhook: webhookView(v), Secret: rest.OrNull(secret.Reveal())}, nil
}

func (d *Handlers) deleteWebhook(ctx context.Context, c *rest.Call, p webhookPath, _ rest.None) (bool, error) {
	h, err := d.hooks()
	if err == nil {
		err = webhookFault(h.Remove(ctx, c.Who.User, p.ID))
	}
	return err == nil, err
}

func (d *Handlers) testWebhook(ctx context.Context, c *rest.Call, p webhookPath, _ rest.None) (api.WebhookDelivery, error) {
	h, err := d.hooks()
	if err != nil {
		return api.WebhookDelivery{}, err
	}
	queued, err := h.Test(ctx, c.Who.User, p.ID)
	return deliveryView(queued), webhookFault(err)
}

func (d *Handlers) listDeliveries(ctx context.Context, c *rest.Call, q deliveriesQuery, _ rest.None) (api.WebhookDeliveryPage, error) {
	page := api.WebhookDeliveryPage{Results: []api.WebhookDelivery{}}
	h, err := d.hooks()
	if err != nil {
		return page, err
	}
	limit := int(q.Limit)
	found, err := h.Page(ctx, c.Who.User, q.ID, q.Before, limit+1)
	if err != nil {
		return page, webhookFault(err)
	}
	if len(found) > limit {
		found = found[:limit]
		page.Next = new(found[limit-1].Seq)
	}
	for _, one := range found {
		page.Results = append(page.Results, deliveryView(one))
	}
	return page, nil
}

func (d *Handlers) retryDelivery(ctx context.Context, c *rest.Call, p deliveryPath, _ rest.None) (api.WebhookDelivery, error) {
	h, err := d.hooks()
	if err != nil {
		return api.WebhookDelivery{}, err
	}
	queued, err := h.Retry(ctx, c.Who.User, p.ID, p.Delivery)
	return deliveryView(queued), webhookFault(err)
}

func webhookView(v notify.View) api.Webhook {
	return api.Webhook{ID: v.ID, URL: v.URL, Events: v.Events.Names(), Description: v.Description, Enabled: v.Enabled,
		DisabledReason: rest.OrNull(v.Health.Disabled), FailingSince: maybeTime(v.Health.FailingSince), Waiting: v.Waiting, CreatedAt: v.CreatedAt, UpdatedAt: v.ChangedAt}
}

func deliveryView(d notify.Delivery) api.WebhookDelivery {
	out := api.WebhookDelivery{ID: d.ID, Type: d.Type, ConversationID: rest.OrNull(string(d.Session)), State: string(d.State), Attempts: d.Attempts,
		Error: rest.OrNull(d.Error), CreatedAt: d.CreatedAt, LastAttemptAt: maybeTime(d.LastAt), NextAttemptAt: maybeTime(d.NextAt)}
	if d.Event > 0 {
		out.Event = &d.Event
	}
	if d.Status > 0 {
		out.StatusCode = &d.Status
	}
	if !d.LastAt.IsZero() {
		out.TookMS = new(d.Took.Milliseconds())
	}
	return out
}

// maybeTime is a time that may not be there.
func maybeTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// orNil is a value that may not have been sent, and given the same for a list,
// of which an empty one is a value too.
func orNil[T any](o api.Opt[T]) *T {
	if v, ok := o.Get(); ok {
		return &v
	}
	return nil
}

func given(o api.Opt[[]string]) []string {
	v, ok := o.Get()
	if ok && v == nil {
		return []string{}
	}
	return v
}
