package main

import (
	"context"
	"net/http"

	"deckhand/internal/notify"
)

// wireWebhooks makes what users manage their webhooks with, and what sends to
// them. client decides which addresses may be dialled.
func (s *server) wireWebhooks(client *http.Client) *notify.Hooks {
	store := s.data.db.Webhooks()
	s.webhooks = notify.NewDispatcher(store, s.keyring, client, s.logger)
	stats := s.webhooks.Stats
	s.metrics.Counter("deckhand_webhook_delivered_total", "Successful webhook attempts.", func() float64 { return float64(stats().Delivered) })
	s.metrics.Counter("deckhand_webhook_failed_total", "Failed webhook attempts.", func() float64 { return float64(stats().Failed) })
	s.metrics.Counter("deckhand_webhook_given_up_total", "Webhook deliveries that were given up.", func() float64 { return float64(stats().GivenUp) })
	s.metrics.Counter("deckhand_webhook_disabled_total", "Webhooks disabled after repeated failures.", func() float64 { return float64(stats().Disabled) })
	return &notify.Hooks{Store: store, Deliveries: store, Seal: s.keyring, Redact: s.redactor.Add}
}

// sendWebhooks sends until ctx ends. What cannot be recorded as sent is not sent.
func (s *server) sendWebhooks(ctx context.Context) error {
	if s.data.db.ReadOnly() {
		return nil
	}
	return s.webhooks.Run(ctx)
}
