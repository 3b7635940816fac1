package httpapi

import (
	"context"
	"encoding/json"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/session"
)

func getApprovals(d *Door, ctx context.Context, c *call, p one, _ none) (api.Approvals, error) {
	return d.Conversations.Approvals(ctx, c.who.User, session.ID(p.ID))
}

func postApproval(d *Door, ctx context.Context, c *call, p one, b api.Decision) (api.Accepted, error) {
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
	return accepted(d.Conversations.Decide(ctx, c.who.User, session.ID(p.ID), in))
}
