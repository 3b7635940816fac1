package main

import (
	"context"
	"errors"

	"deckhand/internal/conversation/attempts"
	"deckhand/internal/gitaccess"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi"
	"deckhand/internal/queue"
	"deckhand/internal/trigger"
)

// wireTriggers lets git providers and users start conversations in the background.
func (s *server) wireTriggers(c *httpapi.Config, member queue.Member) {
	store := s.data.db.Triggers()
	s.triggers = trigger.NewWorker(trigger.Config{Member: member, Inbox: store, Sessions: s.sessions, Log: s.data.db, Index: s.data.db, Forge: s.storedForge, Logger: s.logger,
		Start: trigger.Begin(s.conversations), Say: s.conversations.Say, Page: s.forges.Page})
	s.sessions.Observe(s.triggers)
	c.Hooks.Arrivals = trigger.NewReceiver(store, s.keyring, s.triggers.Wake, s.logger)
	c.Hooks.Integrations = &trigger.Integrations{Store: store, Seal: s.keyring, Redact: s.redactor.Add, Whoami: s.whoami, Base: func() string { return s.public }}
	s.attempts = attempts.New(attempts.Config{Conversations: s.conversations, Store: s.data.db.Queue(s.replica.Queue(attempts.Queue)), Member: member, Workspaces: s.keeper, Logger: s.logger})
	s.sessions.Observe(s.attempts)
	s.conversations.Attempts, c.Conversations.Attempts = s.attempts, s.attempts
}

// storedForge opens a provider with the stored token of a user.
func (s *server) storedForge(ctx context.Context, user, provider string) (gitprovider.Provider, string, error) {
	opened, host, err := s.forges.Stored(ctx, user, provider)
	return opened, host, refused(err)
}

// whoami returns the account of a user at a provider.
func (s *server) whoami(ctx context.Context, user, provider string) (host, name string, err error) {
	host, name, err = s.forges.Whoami(ctx, user, provider)
	return host, name, refused(err)
}

// refused makes the reason why a provider cannot be used visible to users.
func refused(err error) error {
	if none := (*gitaccess.NoTokenError)(nil); errors.As(err, &none) {
		return &trigger.RefusedError{Msg: none.Error()}
	}
	return err
}
