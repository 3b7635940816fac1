package conversations

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
)

// The queries of the MCP server are those of the routes, and are checked like them.

// Events lists stored events.
func (d *Handlers) Events(ctx context.Context, c *rest.Call, id string, start, limit int64) (any, error) {
	return query(ctx, d, c, d.listEvents, eventQuery{ID: id, StartID: start, Limit: limit})
}

// Conversation gets a conversation.
func (d *Handlers) Conversation(ctx context.Context, c *rest.Call, id string) (any, error) {
	return query(ctx, d, c, d.getConversation, rest.InConversation{ID: id})
}

// List lists conversations.
func (d *Handlers) List(ctx context.Context, c *rest.Call, status, text, pageID string, limit int64) (any, error) {
	return query(ctx, d, c, d.listConversations, listQuery{Status: status, Text: text, PageID: pageID, Limit: limit})
}

// Stop stops a conversation.
func (d *Handlers) Stop(ctx context.Context, c *rest.Call, id string) (any, error) {
	return query(ctx, d, c, d.stopConversation, rest.InConversation{ID: id})
}

// Created answers for a conversation that was created.
func (d *Handlers) Created(c *rest.Call, m usecase.Created) api.ConversationResponse {
	return respond(c, m)
}

func query[P, B, R any](ctx context.Context, d *Handlers, c *rest.Call, handle func(ctx context.Context, c *rest.Call, p P, b B) (R, error), p P) (any, error) {
	if err := d.Schemas.CheckParams(p); err != nil {
		return nil, err
	}
	var b B
	return handle(ctx, c, p, b)
}
