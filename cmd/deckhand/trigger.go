package main

import (
	"context"
	"errors"

	"deckhand/internal/gitaccess"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi"
	"deckhand/internal/settings"
	"deckhand/internal/trigger"
)

// wireTriggers lets git providers start conversations.
func (s *server) wireTriggers(c *httpapi.Config) {
	store := s.data.db.Triggers()
	s.triggers = trigger.NewWorker(trigger.Config{Inbox: store, Sessions: s.sessions, Log: s.data.db, Index: s.data.db, Forge: s.storedForge, Logger: s.logger,
		Start: trigger.Begin(s.conversations), Say: s.conversations.Say,
		Page: s.forges.Page})
	s.sessions.Observe(s.triggers)
	c.Arrivals = trigger.NewReceiver(store, s.keyring, s.triggers.Wake, s.logger)
	c.Integrations = &trigger.Integrations{Store: store, Seal: s.keyring, Redact: s.redactor.Add, Whoami: s.whoami, Base: func() string { return s.public }}
}

// answerTriggers works until ctx ends. What cannot be recorded is not done.
func (s *server) answerTriggers(ctx context.Context) error {
	if s.data.db.ReadOnly() {
		return nil
	}
	return s.triggers.Run(ctx)
}

// storedForge opens a provider with the token that a user stored for it, and
// says for which host that is. Without a token nothing can be answered there.
func (s *server) storedForge(ctx context.Context, user, provider string) (gitprovider.Provider, string, error) {
	var t settings.ProviderToken
	err := s.forges.Settings.Read(ctx, user, func(u *settings.Settings) { t = u.ProviderTokens[provider] })
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return nil, "", err
	}
	if t.Token.IsZero() {
		return nil, "", &trigger.RefusedError{Msg: "No token is stored for " + provider + ". Store one in the settings."}
	}
	opened, err := gitaccess.Open(ctx, s.forges.Client, provider, t)
	return opened, t.Host, err
}

// whoami implements trigger.Integrations.Whoami. In Bitbucket Cloud names are not
// unique, so there it is the account's id.
func (s *server) whoami(ctx context.Context, user, provider string) (host, name string, err error) {
	opened, host, err := s.storedForge(ctx, user, provider)
	if err != nil {
		return "", "", err
	}
	me, err := opened.User(ctx)
	if site, bad := gitprovider.Site(provider, host); provider == "bitbucket" && bad == nil && site.Host == "bitbucket.org" {
		return host, me.ID, err
	}
	return host, me.Login, err
}
