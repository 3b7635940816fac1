package main

import (
	"context"
	"net/http"

	"deckhand/internal/httpapi/hooks"
	"deckhand/internal/notice"
	"deckhand/internal/notify"
	"deckhand/internal/notify/mail"
	"deckhand/internal/outbound"
	"deckhand/internal/queue"
)

// wireHooks creates the webhooks, the notifications and their dispatcher. reach and client decide
// which addresses may be dialled.
func (s *server) wireHooks(ctx context.Context, f mail.Flags, reach outbound.Policy, client *http.Client, member queue.Member) (c hooks.Config, err error) {
	store := s.data.db.Webhooks()
	s.webhooks = notify.NewDispatcher(store, s.keyring, client, s.logger)
	s.webhooks.Member = member
	s.webhooks.Measure(s.metrics.Counter)
	c.Webhooks = &notify.Hooks{Store: store, Deliveries: store, Seal: s.keyring, Redact: s.redactor.Add}
	c.Notices, err = notice.Open(ctx, f, s.data.db, s.keyring, s.redactor.Keep, notice.Config{Receivers: store, Settings: s.settings, Linked: s.data.gate.Email, Load: s.sessions.Load, Client: client, CheckURL: reach.CheckURL, Base: func() string { return s.public }, Redact: s.redactor.Add})
	s.webhooks.People = c.Notices
	return c, err
}

// runQueue runs the worker of a queue until ctx ends. With a read-only store results cannot
// be recorded, so nothing is done.
func (s *server) runQueue(ctx context.Context, run func(context.Context) error) error {
	if s.data.db.ReadOnly() {
		return nil
	}
	return run(ctx)
}
