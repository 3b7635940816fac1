package httpapi

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
)

func createConversation(d *Door, ctx context.Context, c *call, _ none, b api.CreateConversation) (api.ConversationResponse, error) {
	made, err := d.Conversations.Create(ctx, usecase.Create{User: c.who.User, Trigger: c.trigger(), RetryKey: c.retryKey, Request: b})
	return c.made(made), err
}

// trigger is how lists name a conversation that this request creates.
func (c *call) trigger() string {
	if c.bearer {
		return usecase.TriggerAPI
	}
	return usecase.TriggerPage
}

// made answers for a conversation that was created.
func (c *call) made(m usecase.Created) api.ConversationResponse {
	if m.New {
		c.session = string(m.ID)
	}
	return response(string(m.ID), nil, m.Status)
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
