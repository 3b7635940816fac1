package conversations

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/conversation/query"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

// row finds a conversation of the caller. Conversations of other users are not found.
func (d *Handlers) row(ctx context.Context, c *rest.Call, id string) (session.Row, error) {
	return d.Service.Row(ctx, c.Who.User, session.ID(id))
}

// load returns the state of a conversation of the caller.
func (d *Handlers) load(ctx context.Context, c *rest.Call, id string) (session.State, error) {
	row, err := d.row(ctx, c, id)
	if err != nil {
		return session.State{}, err
	}
	return d.Sessions.Load(ctx, row.ID)
}

func (d *Handlers) listConversations(ctx context.Context, c *rest.Call, q query.List, _ rest.None) (api.ConversationPage, error) {
	return d.Queries.List(ctx, c.Who.User, q)
}

func (d *Handlers) getConversation(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Conversation, error) {
	out, err := d.Queries.Get(ctx, c.Who.User, session.ID(p.ID))
	if err == nil {
		out.SessionAPIKey = d.PageKey(c)
	}
	return out, err
}

func (d *Handlers) patchConversation(ctx context.Context, c *rest.Call, p rest.InConversation, b api.PatchConversation) (bool, error) {
	err := d.Service.Rename(ctx, c.Who.User, session.ID(p.ID), b.Title)
	return err == nil, err
}

func (d *Handlers) deleteConversation(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (bool, error) {
	err := d.Service.Delete(ctx, c.Who.User, session.ID(p.ID))
	return err == nil, err
}

func (d *Handlers) startConversation(ctx context.Context, c *rest.Call, p rest.InConversation, _ api.StartConversation) (api.ConversationResponse, error) {
	st, err := d.Service.Start(ctx, c.Who.User, session.ID(p.ID))
	return query.Answer(session.ID(p.ID), st.Status()), err
}

func (d *Handlers) stopConversation(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.ConversationResponse, error) {
	st, stopped, err := d.Service.Stop(ctx, c.Who.User, session.ID(p.ID), usecase.StoppedByUser)
	if err == nil {
		d.Stopped(st.ID, st.Halt)
	}
	return query.Stopped(session.ID(p.ID), st, stopped), err
}

type microagentListQuery struct {
	Repository string `query:"selected_repository" required:"true" maxLength:"500"`
	PageID     string `query:"page_id" maxLength:"500" doc:"Cursor: next_page_id of the previous page."`
	Limit      int64  `query:"limit" default:"20" minimum:"1" maximum:"100"`
}

func (d *Handlers) microagentConversations(ctx context.Context, c *rest.Call, q microagentListQuery, _ rest.None) (api.ConversationPage, error) {
	return d.Queries.List(ctx, c.Who.User, query.List{PageID: q.PageID, Limit: q.Limit, Repository: q.Repository, Trigger: usecase.TriggerMicroagent})
}
