package httpapi

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/session"
)

const aboutFork = "The copy has the history up to the event, with the same numbers, and the workspace as it is now, with what was installed in it where the sandbox keeps that. " +
	"It may be made while the agent works: where a call is open at the event, the history ends before that call. The copy is stopped, and goes on with the next message. " +
	"It begins with a cost of 0: what its history cost was the original's. Pull requests stay with the original. Without a sandbox (the driver host) a workspace cannot be copied, which is a 409."

func forkConversation(d *Door, ctx context.Context, c *call, p one, b api.ForkConversation) (api.ConversationResponse, error) {
	ctx, release := d.hold(ctx, c)
	defer release()
	made, err := d.Conversations.Fork(ctx, usecase.Fork{User: c.who.User, From: session.ID(p.ID), Event: b.EventID.Value, Title: b.Title, Trigger: c.trigger(), RetryKey: c.retryKey})
	if usecase.RefusalOf(err) == nil {
		err = whyEnded(ctx, err)
	}
	return c.made(made), err
}
