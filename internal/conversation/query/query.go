// Package query answers questions about conversations for every entry point: one conversation, lists, events. It reads
// what is stored and returns the types of package api, and knows neither requests nor connections.
package query

import (
	"context"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/live"
	"deckhand/internal/session"
)

// Reader reads conversations for their users. A conversation of another user is session.ErrNotFound.
type Reader struct {
	Conversations *conversation.Service
	// Hub has the encoders of LegacyEvents and NativeEvents, in this order.
	Hub *live.Hub
	// Mask hides the secrets of an event's owner before a client sees it; nil hides nothing.
	Mask func(ctx context.Context, owner string, event []byte) ([]byte, error)
	// Prefix is the path before ours in the public address.
	Prefix string
}

// Masked returns an event as its owner's clients may see it. A log holds what was really said and run, so that a command
// is run as it was meant; what clients see of it is masked on its way out.
func (r *Reader) Masked(ctx context.Context, owner string, event []byte) ([]byte, error) {
	if r.Mask == nil {
		return event, nil
	}
	return r.Mask(ctx, owner, event)
}

// Answer is the answer to a command that created, forked or started a conversation.
func Answer(id session.ID, status session.Status) api.ConversationResponse {
	return api.ConversationResponse{Status: "ok", ConversationID: string(id), ConversationStatus: new(string(status))}
}

// Stopped is the answer to a stop; stopped is false if the conversation was not running.
func Stopped(id session.ID, st session.State, stopped bool) api.ConversationResponse {
	out, message := Answer(id, st.Status()), "Conversation was not running"
	if stopped {
		message = "Conversation stopped successfully"
	}
	out.Message = &message
	return out
}
