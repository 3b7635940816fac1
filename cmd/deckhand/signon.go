package main

import (
	"context"
	"time"

	"deckhand/internal/datadir"
	"deckhand/internal/oidc"
	"deckhand/internal/outbound"
	"deckhand/internal/secret"
)

// signOnFlags configure the identity provider.
type signOnFlags = oidc.Flags

// signOn returns nil if no provider is configured.
func signOn(ctx context.Context, f signOnFlags, d *data, keyring *secret.Keyring, redactor *secret.Redactor) (*oidc.SignOn, error) {
	c, err := f.Config()
	if err != nil || c.Issuer == "" {
		return nil, err
	}
	redactor.Keep(c.ClientSecret)
	// The operator chose the provider, which may be in a private network.
	c.Client = outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, 10*time.Second)
	if c.Key, err = datadir.Key(ctx, d.db, keyring, "sign_on_key", "sign-on key"); err != nil {
		return nil, err
	}
	return oidc.New(c)
}

// trySignOn reports a wrong configuration at the start, to the operator, rather than at the first login.
func (s *server) trySignOn(ctx context.Context) error {
	if s.api.Page.SignOn == nil {
		return nil
	}
	if err := s.api.Page.SignOn.Check(ctx); err != nil && ctx.Err() == nil {
		s.logger.Warn("single sign-on is not available; the identity provider is contacted again on the next login", "error", err)
	}
	return nil
}
