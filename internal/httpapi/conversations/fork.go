package conversations

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const aboutFork = "Copies the history up to the event, with the same event numbers, and the workspace, including installed packages if the sandbox keeps them. Its files are the current ones, or with files=event those after the event. " +
	"A conversation can be forked while the agent is working: if a tool call is in progress at the event, the history ends before that call. The copy is stopped and continues with its next message. " +
	"Its cost starts at 0. Pull requests stay with the original. With the sandbox driver host the workspace cannot be copied, and the response is a 409."

func (d *Handlers) forkConversation(ctx context.Context, c *rest.Call, p rest.InConversation, b api.ForkConversation) (api.ConversationResponse, error) {
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	made, err := d.Service.Fork(ctx, usecase.Fork{User: c.Who.User, From: session.ID(p.ID), Event: b.EventID.Value, FilesAtEvent: b.Files.Value == "event", Title: b.Title, Trigger: triggerOf(c), RetryKey: c.RetryKey})
	if usecase.RefusalOf(err) == nil {
		err = rest.WhyEnded(ctx, err)
	}
	return respond(c, made), err
}
