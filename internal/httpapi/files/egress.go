package files

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/session"
	"deckhand/internal/workspace/network"
)

const aboutEgress = "The server's policy also applies: a request is allowed only if both policies allow it, so a conversation can only be stricter than the server. " +
	"A change applies from the next request, and closes open connections that it does not allow."

type egressQuery struct {
	ID     string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Before int64  `query:"before" default:"0" minimum:"0" doc:"Cursor: next of the previous page."`
	Limit  int64  `query:"limit" default:"20" minimum:"1" maximum:"100"`
}

func (d *Handlers) getEgress(ctx context.Context, c *rest.Call, q egressQuery, _ rest.None) (api.Egress, error) {
	id, err := d.WorkspaceOf(ctx, c, q.ID)
	if err != nil {
		return api.Egress{}, err
	}
	st, err := d.Sessions.Load(ctx, id)
	if err != nil {
		return api.Egress{}, err
	}
	return d.describeEgress(ctx, st, q.Before, int(q.Limit))
}

func (d *Handlers) describeEgress(ctx context.Context, st session.State, before int64, limit int) (api.Egress, error) {
	own := network.Policy(st)
	out := api.Egress{Policy: wirePolicy(own), Effective: wirePolicy(egress.Stricter(d.ServerPolicy, own)), Requests: []api.EgressRequest{}}
	if d.Egress == nil {
		return out, nil
	}
	found, err := d.Egress.Entries(ctx, string(st.ID), before, limit+1)
	if err != nil {
		return out, err
	}
	if len(found) > limit {
		found = found[:limit]
		out.Next = new(found[limit-1].ID)
	}
	for _, e := range found {
		out.Requests = append(out.Requests, api.EgressRequest{ID: e.ID, At: e.At, TookMS: e.Took.Milliseconds(), Call: e.Call, Method: e.Method,
			Host: e.Host, Port: int(e.Port), Sent: e.Sent, Received: e.Received, Verdict: string(e.Verdict), Reason: e.Reason})
	}
	return out, nil
}

func wirePolicy(p egress.Policy) api.EgressPolicy {
	return api.EgressPolicy{Mode: string(p.Mode), Allow: append([]string{}, p.Allow...)}
}

func (d *Handlers) setEgress(ctx context.Context, c *rest.Call, p rest.InConversation, b api.SetEgress) (api.Egress, error) {
	st, err := d.Conversations.SetEgress(ctx, usecase.Egress{User: c.Who.User, ID: session.ID(p.ID), Policy: b})
	if err != nil {
		return api.Egress{}, err
	}
	if d.Egress != nil {
		d.Egress.Changed(p.ID)
	}
	return d.describeEgress(ctx, st, 0, 20)
}
