package main

import (
	"context"
	"net/http"

	"deckhand/internal/notify"
	"deckhand/internal/queue"
)

// wireWebhooks creates the webhooks and their dispatcher. client decides which addresses
// may be dialled.
func (s *server) wireWebhooks(client *http.Client, member queue.Member) *notify.Hooks {
	store := s.data.db.Webhooks()
	s.webhooks = notify.NewDispatcher(store, s.keyring, client, s.logger)
	s.webhooks.Member = member
	stats := s.webhooks.Stats
	s.metrics.Counter("deckhand_webhook_delivered_total", "Successful webhook attempts.", func() float64 { return float64(stats().Delivered) })
	s.metrics.Counter("deckhand_webhook_failed_total", "Failed webhook attempts.", func() float64 { return float64(stats().Failed) })
	s.metrics.Counter("deckhand_webhook_given_up_total", "Webhook deliveries that were given up.", func() float64 { return float64(stats().GivenUp) })
	s.metrics.Counter("deckhand_webhook_disabled_total", "Webhooks disabled after repeated failures.", func() float64 { return float64(stats().Disabled) })
	return &notify.Hooks{Store: store, Deliveries: store, Seal: s.keyring, Redact: s.redactor.Add}
}

// runQueue runs the worker of a queue until ctx ends. With a read-only store results cannot
// be recorded, so nothing is done.
func (s *server) runQueue(ctx context.Context, run func(context.Context) error) error {
	if s.data.db.ReadOnly() {
		return nil
	}
	return run(ctx)
}
