package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"deckhand/internal/oidc"
	"deckhand/internal/outbound"
	"deckhand/internal/secret"
)

// signOnFlags say which identity provider vouches for people.
type signOnFlags struct {
	OIDCIssuer         string   `name:"oidc-issuer" env:"DECKHAND_OIDC_ISSUER" placeholder:"URL" help:"Let people sign on at this OpenID Connect provider, e.g. https://id.example.org; spelt as the provider spells it. It sends browsers back to /login/oidc/callback below --public-url."`
	OIDCClientID       string   `name:"oidc-client-id" env:"DECKHAND_OIDC_CLIENT_ID" placeholder:"ID" help:"How the provider knows this server."`
	OIDCSecretFile     string   `name:"oidc-client-secret-file" env:"DECKHAND_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File with the client's secret. Default: none, for a public client."`
	OIDCScopes         []string `name:"oidc-scopes" env:"DECKHAND_OIDC_SCOPES" placeholder:"SCOPE" help:"What to ask the provider for, beside openid. Default: profile,email."`
	OIDCAllowedDomains []string `name:"oidc-allowed-domains" env:"DECKHAND_OIDC_ALLOWED_DOMAINS" placeholder:"DOMAIN" help:"Let only people in whose verified e-mail address has one of these domains. Default: everybody whom the provider lets in."`
	OIDCAdminGroup     string   `name:"oidc-admin-group" env:"DECKHAND_OIDC_ADMIN_GROUP" placeholder:"NAME" help:"Members of this group (claim groups) are administrators, and nobody else who signs on. Default: nobody is made one."`
	OIDCName           string   `name:"oidc-name" env:"DECKHAND_OIDC_NAME" placeholder:"NAME" help:"What the login page calls the provider. Default: the issuer's host name."`
}

// signOn is nil when no provider was named.
func (f signOnFlags) signOn(ctx context.Context, d *data, keyring *secret.Keyring, redactor *secret.Redactor) (*oidc.SignOn, error) {
	if f.OIDCIssuer == "" {
		if f.OIDCClientID != "" || f.OIDCSecretFile != "" || f.OIDCAdminGroup != "" || f.OIDCName != "" || len(f.OIDCScopes) > 0 || len(f.OIDCAllowedDomains) > 0 {
			return nil, errors.New("--oidc-… flags need --oidc-issuer, which says whom to ask")
		}
		return nil, nil
	}
	password, err := f.secret()
	if err != nil {
		return nil, err
	}
	redactor.Keep(password)
	c := oidc.Config{Issuer: f.OIDCIssuer, ClientID: f.OIDCClientID, ClientSecret: password, Scopes: f.OIDCScopes, Domains: f.OIDCAllowedDomains, AdminGroup: f.OIDCAdminGroup, Name: f.OIDCName,
		// The operator chose the provider, which may well stand in the private network.
		Client: outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, 10*time.Second)}
	if d.db.ReadOnly() {
		_, _ = rand.Read(c.Key[:])
	} else if c.Key, err = d.lastingKey(ctx, keyring, "sign_on_key", "sign-on key"); err != nil {
		return nil, err
	}
	s, err := oidc.New(c)
	if err != nil {
		return nil, fmt.Errorf("--oidc-…: %w", err)
	}
	return s, nil
}

// trySignOn says early that nobody can sign on: a mistake in a flag is found by who made it, not by who comes first.
func (s *server) trySignOn(ctx context.Context) error {
	if s.door.SignOn == nil {
		return nil
	}
	if err := s.door.SignOn.Check(ctx); err != nil && ctx.Err() == nil {
		s.logger.Warn("nobody can sign on for now; the identity provider is asked again when somebody tries", "error", err)
	}
	return nil
}

// secret reads the client's secret. An empty file is a mistake, not a public client.
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
