package hooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/trigger"
)

const aboutIntegrations = "An integration lets a labelled issue, or a comment that mentions the agent, start a conversation with your settings and at your cost, " +
	"or continue the existing conversation of the issue or pull request. The reply is posted there with your stored token. Enter webhook_url and the secret at the provider. The secret is shown only once."

// integrationPath names an integration.
type integrationPath struct {
	ID string `path:"integration_id" minLength:"1" maxLength:"64"`
}

type arrivalsQuery struct {
	ID     string `path:"integration_id" minLength:"1" maxLength:"64"`
	Before int64  `query:"before" default:"0" minimum:"0" doc:"Cursor: next of the previous page."`
	Limit  int64  `query:"limit" default:"20" minimum:"1" maximum:"100"`
}

// integrations are there, if this server has any.
func (d *Handlers) integrations() (*trigger.Integrations, error) {
	if d.Integrations == nil {
		return nil, rest.Fail(http.StatusNotFound, api.CodeNotFound, "Integrations are not enabled on this server.")
	}
	return d.Integrations, nil
}

// integrationFault gives the errors of integrations their answers.
func integrationFault(err error) error {
	var invalid *trigger.InvalidError
	switch {
	case errors.As(err, &invalid):
		return api.Invalid("value_error", usecase.Sentence(invalid.Msg), invalid.Field)
	case errors.Is(err, trigger.ErrNotFound):
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "Not found")
	case errors.Is(err, trigger.ErrTooMany):
		return rest.Fail(http.StatusConflict, api.CodeConflict, fmt.Sprintf("You have reached the limit of %d integrations. Delete one first.", trigger.MaxIntegrations))
	}
	return err
}

func (d *Handlers) listIntegrations(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) ([]api.Integration, error) {
	s, err := d.integrations()
	if err != nil {
		return nil, err
	}
	found, err := s.List(ctx, c.Who.User)
	out := []api.Integration{}
	for _, in := range found {
		out = append(out, integrationView(s, in))
	}
	return out, err
}

func (d *Handlers) createIntegration(ctx context.Context, c *rest.Call, _ rest.None, b api.CreateIntegration) (api.NewIntegration, error) {
	s, err := d.integrations()
	if err != nil {
		return api.NewIntegration{}, err
	}
	change := trigger.Change{Host: orNil(b.Host), Mention: orNil(b.Mention), Label: orNil(b.Label),
		Repositories: given(b.Repositories), AllowedUsers: given(b.AllowedUsers), Enabled: orNil(b.Enabled)}
	in, secret, err := s.Create(ctx, c.Who.User, b.Provider, change)
	if err != nil {
		return api.NewIntegration{}, integrationFault(err)
	}
	return api.NewIntegration{Integration: integrationView(s, in), Secret: secret.Reveal()}, nil
}

func (d *Handlers) getIntegration(ctx context.Context, c *rest.Call, p integrationPath, _ rest.None) (api.Integration, error) {
	s, err := d.integrations()
	if err != nil {
		return api.Integration{}, err
	}
	in, err := s.Get(ctx, c.Who.User, p.ID)
	return integrationView(s, in), integrationFault(err)
}

func (d *Handlers) patchIntegration(ctx context.Context, c *rest.Call, p integrationPath, b api.PatchIntegration) (api.PatchedIntegration, error) {
	s, err := d.integrations()
	if err != nil {
		return api.PatchedIntegration{}, err
	}
	change := trigger.Change{Host: orNil(b.Host), Mention: orNil(b.Mention), Label: orNil(b.Label), Repositories: given(b.Repositories),
		AllowedUsers: given(b.AllowedUsers), Enabled: orNil(b.Enabled), RotateSecret: b.RotateSecret.Value}
	in, secret, err := s.Change(ctx, c.Who.User, p.ID, change)
	if err != nil {
		return api.PatchedIntegration{}, integrationFault(err)
	}
	return api.PatchedIntegration{Integration: integrationView(s, in), Secret: rest.OrNull(secret.Reveal())}, nil
}

func (d *Handlers) deleteIntegration(ctx context.Context, c *rest.Call, p integrationPath, _ rest.None) (bool, error) {
	s, err := d.integrations()
	if err == nil {
		err = integrationFault(s.Remove(ctx, c.Who.User, p.ID))
	}
	return err == nil, err
}

func (d *Handlers) listArrivals(ctx context.Context, c *rest.Call, q arrivalsQuery, _ rest.None) (api.IntegrationDeliveryPage, error) {
	page := api.IntegrationDeliveryPage{Results: []api.IntegrationDelivery{}}
	s, err := d.integrations()
	if err != nil {
		return page, err
	}
	limit := int(q.Limit)
	found, err := s.Page(ctx, c.Who.User, q.ID, q.Before, limit+1)
	if err != nil {
		return page, integrationFault(err)
	}
	if len(found) > limit {
		found = found[:limit]
		page.Next = new(found[limit-1].Seq)
	}
	for _, one := range found {
		page.Results = append(page.Results, arrivalView(one))
	}
	return page, nil
}

func integrationView(s *trigger.Integrations, in trigger.Integration) api.Integration {
	out := api.Integration{ID: in.ID, Provider: in.Provider, Host: in.Host, Mention: in.Mention, Label: in.Label, Repositories: in.Repositories, AllowedUsers: in.AllowedUsers,
		Enabled: in.Enabled, WebhookURL: s.Address(in), Warnings: []string{}, CreatedAt: in.CreatedAt, UpdatedAt: in.ChangedAt}
	if slices.Contains(in.AllowedUsers, trigger.AllUsers) {
		out.Warnings = append(out.Warnings, "Anyone who can comment in these repositories can start the agent with your settings and token, at your cost.")
	}
	return out
}

func arrivalView(d trigger.Delivery) api.IntegrationDelivery {
	out := api.IntegrationDelivery{ID: d.ID, Event: d.Event, Repository: rest.OrNull(d.Repository), PullRequest: d.Pull, Actor: rest.OrNull(d.Actor), State: string(d.State), Reason: rest.OrNull(d.Reason),
		ConversationID: rest.OrNull(string(d.Session)), CreatedAt: d.CreatedAt, NextAttemptAt: maybeTime(d.NextAt), DoneAt: maybeTime(d.DoneAt)}
	if d.Number > 0 {
		out.Number = &d.Number
	}
	return out
}
