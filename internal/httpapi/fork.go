package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

const aboutFork = "The copy has the history up to the event, with the same numbers, and the workspace as it is now, with what was installed in it where the sandbox keeps that. " +
	"It may be made while the agent works: where a call is open at the event, the history ends before that call. The copy is stopped, and goes on with the next message. " +
	"It begins with a cost of 0: what its history cost was the original's. Pull requests stay with the original. Without a sandbox (the driver host) a workspace cannot be copied, which is a 409."

// forkConversation makes a copy. Before the one transaction that stores it nobody
// can see it, and a workspace that was copied for nothing is swept away.
func forkConversation(d *Door, ctx context.Context, c *call, p one, b api.ForkConversation) (api.ConversationResponse, error) {
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.ConversationResponse{}, err
	}
	if b.EventID.Value > row.Last {
		return api.ConversationResponse{}, api.Invalid("less_than_equal", "The conversation has no such event yet.", "event_id")
	}
	title, given := b.Title.Get()
	if title = strings.TrimSpace(title); given && title == "" {
		return api.ConversationResponse{}, api.Invalid("string_too_short", "A title has at least one character that is not blank.", "title")
	}
	id, print := d.NewID(), ""
	if c.retryKey != "" {
		id, print = session.ID(c.retryKey[:32]), digest(c.who.User, "fork", p.ID, itoa(b.EventID.Value), title)
		if again, err := d.existing(ctx, c, id, print); again != nil || err != nil {
			return deref(again), err
		}
	}
	ctx, release := d.hold(ctx, c)
	defer release()
	f := session.Fork{Number: b.EventID.Value, Title: title, Trigger: planOf(c, api.CreateConversation{}).trigger, Fingerprint: print}
	top, err := d.forkOf(ctx, row.ID, id, &f)
	if err != nil {
		return api.ConversationResponse{}, whyEnded(ctx, err)
	}
	var st session.State
	store := func(ctx context.Context) (err error) {
		st, err = d.Sessions.Fork(ctx, row.ID, id, f)
		return err
	}
	c.session = string(id)
	if d.Workspaces == nil {
		err = store(ctx)
	} else {
		err = d.Workspaces.Copy(ctx, top, id, store)
	}
	switch {
	case errors.Is(err, session.ErrConflict): // somebody was faster
		again, err := d.existing(ctx, c, id, print)
		return deref(again), err
	case errors.Is(err, workspace.ErrNoCopy):
		return api.ConversationResponse{}, fail(http.StatusConflict, api.CodeConversationRefused, sentence(err.Error()))
	}
	return response(string(id), nil, st.Status()), whyEnded(ctx, err)
}

// forkOf fills in what the copy has from the original: its tool servers, sealed
// under its own name, and what is true of the workspace, which belongs to the
// topmost of those that were delegated.
func (d *Door) forkOf(ctx context.Context, from, to session.ID, f *session.Fork) (top session.ID, err error) {
	st, err := d.Sessions.Load(ctx, from)
	if err != nil {
		return "", err
	}
	f.Workspace = st
	for f.Workspace.Created.Parent != "" {
		if f.Workspace, err = d.Sessions.Load(ctx, f.Workspace.Created.Parent); err != nil {
			return "", err
		}
	}
	top = f.Workspace.ID
	if len(st.Created.MCP) == 0 {
		return top, nil
	}
	plain, err := d.Seal.Open(ctx, st.Owner, sealedMCP(top), st.Created.MCP)
	if err != nil {
		return top, err
	}
	f.MCP, err = d.Seal.Seal(ctx, st.Owner, sealedMCP(to), plain)
	return top, err
}

// sealedMCP is the name under which a conversation's own tool servers are sealed.
func sealedMCP(id session.ID) string { return "conversation." + string(id) + ".mcp_config" }
