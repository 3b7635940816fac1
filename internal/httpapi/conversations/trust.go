package conversations

import (
	"context"
	"errors"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

const aboutTrust = "A repository is trusted if you can push to it, or if you add it to your trusted repositories. In an untrusted repository, the sandbox does not get your custom secrets, stdio MCP servers with env values do not start, " +
	"the setup script runs without network access, and git hooks are not installed. Processes that already run in the sandbox are not affected by a change."

func (d *Handlers) getTrust(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Trust, error) {
	st, err := d.load(ctx, c, p.ID)
	if err != nil {
		return api.Trust{}, err
	}
	return d.trust(ctx, st)
}

func (d *Handlers) trust(ctx context.Context, st session.State) (api.Trust, error) {
	out := api.Trust{Trusted: st.Trusts(), Reason: rest.OrNull(string(st.Trust.Reason))}
	s, err := d.Settings.Get(ctx, st.Owner)
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return out, err
	}
	out.Repository = rest.OrNull(d.RepositoryName(st.Created, s))
	return out, nil
}

func (d *Handlers) getTrusted(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.TrustedRepositories, error) {
	out := api.TrustedRepositories{Repositories: []string{}}
	err := d.Settings.Read(ctx, c.Who.User, func(s *settings.Settings) { out.Repositories = append(out.Repositories, s.TrustedRepositories...) })
	if errors.Is(err, settings.ErrNotFound) {
		err = nil
	}
	return out, err
}

func (d *Handlers) setTrusted(ctx context.Context, c *rest.Call, _ rest.None, b api.TrustedRepositories) (api.TrustedRepositories, error) {
	if err := d.Settings.Change(ctx, c.Who.User, func(s *settings.Settings) error { return s.TrustOnly(b.Repositories) }); err != nil {
		return api.TrustedRepositories{}, err
	}
	return d.getTrusted(ctx, c, rest.None{}, rest.None{})
}

func (d *Handlers) setTrust(ctx context.Context, c *rest.Call, p rest.InConversation, b api.SetTrust) (api.Trust, error) {
	st, err := d.Service.SetTrust(ctx, usecase.Trust{User: c.Who.User, ID: session.ID(p.ID), Trusted: b.Trusted})
	if err != nil {
		return api.Trust{}, err
	}
	return d.trust(ctx, st)
}
