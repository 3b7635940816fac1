package conversations

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/conversation/query"
	"deckhand/internal/httpapi/rest"
)

func (d *Handlers) createConversation(ctx context.Context, c *rest.Call, _ rest.None, b api.CreateConversation) (api.ConversationResponse, error) {
	made, err := d.Service.Create(ctx, usecase.Create{User: c.Who.User, Trigger: triggerOf(c), RetryKey: c.RetryKey, Request: b})
	return respond(c, made), err
}

// triggerOf is how lists name a conversation that this request creates.
func triggerOf(c *rest.Call) string {
	if c.Bearer {
		return usecase.TriggerAPI
	}
	return usecase.TriggerPage
}

// respond answers for a conversation that was created.
func respond(c *rest.Call, m usecase.Created) api.ConversationResponse {
	if m.New {
		c.Session = string(m.ID)
	}
	return query.Answer(m.ID, m.Status)
}
