package conversations

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
)

// The queries of the MCP server are those of the routes, and are checked like them.

// Events lists stored events.
func (d *Door) Events(ctx context.Context, c *rest.Call, id string, start, limit int64) (any, error) {
	return query(ctx, d, c, d.listEvents, eventQuery{ID: id, StartID: start, Limit: limit})
}

// Conversation gets a conversation.
func (d *Door) Conversation(ctx context.Context, c *rest.Call, id string) (any, error) {
	return query(ctx, d, c, d.getConversation, rest.InConversation{ID: id})
}

// List lists conversations.
func (d *Door) List(ctx context.Context, c *rest.Call, status, text, pageID string, limit int64) (any, error) {
	return query(ctx, d, c, d.listConversations, listQuery{Status: status, Text: text, PageID: pageID, Limit: limit})
}

// Stop stops a conversation.
func (d *Door) Stop(ctx context.Context, c *rest.Call, id string) (any, error) {
	return query(ctx, d, c, d.stopConversation, rest.InConversation{ID: id})
}

// Created answers for a conversation that was created.
func (d *Door) Created(c *rest.Call, m usecase.Created) api.ConversationResponse {
	return respond(c, m)
}

func query[P, B, R any](ctx context.Context, d *Door, c *rest.Call, handle func(ctx context.Context, c *rest.Call, p P, b B) (R, error), p P) (any, error) {
	if err := d.Schemas.CheckParams(p); err != nil {
		return nil, err
	}
	var b B
	return handle(ctx, c, p, b)
}
