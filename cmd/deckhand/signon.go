package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"deckhand/internal/datadir"
	"deckhand/internal/oidc"
	"deckhand/internal/outbound"
	"deckhand/internal/secret"
)

// signOnFlags configure the identity provider.
type signOnFlags struct {
	OIDCIssuer         string   `name:"oidc-issuer" env:"DECKHAND_OIDC_ISSUER" placeholder:"URL" help:"Issuer URL of an OpenID Connect provider for single sign-on, such as https://id.example.org, exactly as the provider reports it. The redirect URI is --public-url plus /login/oidc/callback."`
	OIDCClientID       string   `name:"oidc-client-id" env:"DECKHAND_OIDC_CLIENT_ID" placeholder:"ID" help:"Client ID of this server at the provider."`
	OIDCSecretFile     string   `name:"oidc-client-secret-file" env:"DECKHAND_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File with the client secret. Default: none, for a public client."`
	OIDCScopes         []string `name:"oidc-scopes" env:"DECKHAND_OIDC_SCOPES" placeholder:"SCOPE" help:"Scopes to request in addition to openid. Default: profile,email."`
	OIDCAllowedDomains []string `name:"oidc-allowed-domains" env:"DECKHAND_OIDC_ALLOWED_DOMAINS" placeholder:"DOMAIN" help:"Allow only users with a verified e-mail address in one of these domains. Default: all users of the provider."`
	OIDCAdminGroup     string   `name:"oidc-admin-group" env:"DECKHAND_OIDC_ADMIN_GROUP" placeholder:"NAME" help:"Group (claim groups) whose members become admins on login; other single sign-on users lose admin rights. Default: single sign-on does not grant admin rights."`
	OIDCName           string   `name:"oidc-name" env:"DECKHAND_OIDC_NAME" placeholder:"NAME" help:"Name of the provider on the login page. Default: the issuer's host name."`
}

// signOn returns nil if no provider is configured.
func (f signOnFlags) signOn(ctx context.Context, d *data, keyring *secret.Keyring, redactor *secret.Redactor) (*oidc.SignOn, error) {
	if f.OIDCIssuer == "" {
		if f.OIDCClientID != "" || f.OIDCSecretFile != "" || f.OIDCAdminGroup != "" || f.OIDCName != "" || len(f.OIDCScopes) > 0 || len(f.OIDCAllowedDomains) > 0 {
			return nil, errors.New("--oidc-… flags need --oidc-issuer")
		}
		return nil, nil
	}
	password, err := f.secret()
	if err != nil {
		return nil, err
	}
	redactor.Keep(password)
	c := oidc.Config{Issuer: f.OIDCIssuer, ClientID: f.OIDCClientID, ClientSecret: password, Scopes: f.OIDCScopes, Domains: f.OIDCAllowedDomains, AdminGroup: f.OIDCAdminGroup, Name: f.OIDCName,
		// The operator chose the provider, which may be in a private network.
		Client: outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, 10*time.Second)}
	if c.Key, err = datadir.Key(ctx, d.db, keyring, "sign_on_key", "sign-on key"); err != nil {
		return nil, err
	}
	s, err := oidc.New(c)
	if err != nil {
		return nil, fmt.Errorf("--oidc-…: %w", err)
	}
	return s, nil
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

// secret reads the client secret. An empty file is an error, not a public client.
func (f signOnFlags) secret() (string, error) {
	if f.OIDCSecretFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(f.OIDCSecretFile)
	if err != nil {
		return "", fmt.Errorf("--oidc-client-secret-file: %w", err)
	}
	password := strings.TrimSpace(string(b))
	if password == "" {
		return "", fmt.Errorf("--oidc-client-secret-file: %s is empty", f.OIDCSecretFile)
	}
	return password, nil
}
