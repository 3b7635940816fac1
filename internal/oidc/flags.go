package oidc

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Flags configure the identity provider.
type Flags struct {
	OIDCIssuer         string   `name:"oidc-issuer" env:"DECKHAND_OIDC_ISSUER" placeholder:"URL" help:"Issuer URL of an OpenID Connect provider for single sign-on, such as https://id.example.org, exactly as the provider reports it. The redirect URI is --public-url plus /login/oidc/callback."`
	OIDCClientID       string   `name:"oidc-client-id" env:"DECKHAND_OIDC_CLIENT_ID" placeholder:"ID" help:"Client ID of this server at the provider."`
	OIDCSecretFile     string   `name:"oidc-client-secret-file" env:"DECKHAND_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File with the client secret. Default: none, for a public client."`
	OIDCScopes         []string `name:"oidc-scopes" env:"DECKHAND_OIDC_SCOPES" placeholder:"SCOPE" help:"Scopes to request in addition to openid. Default: profile,email."`
	OIDCAllowedDomains []string `name:"oidc-allowed-domains" env:"DECKHAND_OIDC_ALLOWED_DOMAINS" placeholder:"DOMAIN" help:"Allow only users with a verified e-mail address in one of these domains. Default: all users of the provider."`
	OIDCAdminGroup     string   `name:"oidc-admin-group" env:"DECKHAND_OIDC_ADMIN_GROUP" placeholder:"NAME" help:"Group (claim groups) whose members become admins on login; other single sign-on users lose admin rights. Default: single sign-on does not grant admin rights."`
	OIDCName           string   `name:"oidc-name" env:"DECKHAND_OIDC_NAME" placeholder:"NAME" help:"Name of the provider on the login page. Default: the issuer's host name."`
}

// CheckSignOn returns an error if the flags cannot be used.
func (f Flags) CheckSignOn() error {
	_, err := f.Config()
	return err
}

// Config returns the configuration that the flags describe, without a key and a client. The issuer is "" if no provider is configured.
func (f Flags) Config() (Config, error) {
	if f.OIDCIssuer == "" {
		if f.OIDCClientID != "" || f.OIDCSecretFile != "" || f.OIDCAdminGroup != "" || f.OIDCName != "" || len(f.OIDCScopes) > 0 || len(f.OIDCAllowedDomains) > 0 {
			return Config{}, errors.New("--oidc-… flags need --oidc-issuer")
		}
		return Config{}, nil
	}
	if err := CheckIssuer(f.OIDCIssuer); err != nil {
		return Config{}, err
	}
	if f.OIDCClientID == "" {
		return Config{}, errors.New("--oidc-issuer needs --oidc-client-id: the client ID is missing")
	}
	password, err := f.secret()
	if err != nil {
		return Config{}, err
	}
	c := Config{Issuer: f.OIDCIssuer, ClientID: f.OIDCClientID, ClientSecret: password, Scopes: f.OIDCScopes, Domains: f.OIDCAllowedDomains, AdminGroup: f.OIDCAdminGroup, Name: f.OIDCName}
	if _, err := New(c); err != nil {
		return Config{}, fmt.Errorf("--oidc-allowed-domains: %w", err)
	}
	return c, nil
}

// secret reads the client secret. An empty file is an error, not a public client.
func (f Flags) secret() (string, error) {
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
