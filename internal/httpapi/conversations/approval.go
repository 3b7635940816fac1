package conversations

import (
	"context"
	"encoding/json"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

func (d *Handlers) getApprovals(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Approvals, error) {
	return d.Service.Approvals(ctx, c.Who.User, session.ID(p.ID))
}

func (d *Handlers) postApproval(ctx context.Context, c *rest.Call, p rest.InConversation, b api.Decision) (api.Accepted, error) {
	in := usecase.Decision{CallID: b.CallID.Value, Approve: b.Decision != "reject", Always: b.Decision == "always", Reason: b.Reason.Value}
	if args, ok := b.Arguments.Get(); ok {
		var err error
		if in.Args, err = json.Marshal(args); err != nil {
			return api.Accepted{}, err
		}
	}
	if pattern, ok := b.Pattern.Get(); ok {
		in.Pattern = &pattern
	}
	return accepted(d.Service.Decide(ctx, c.Who.User, session.ID(p.ID), in))
}
