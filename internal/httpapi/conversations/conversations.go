package conversations

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
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

type listQuery struct {
	PageID     string `query:"page_id" maxLength:"500" doc:"Cursor: next_page_id of the previous page."`
	Limit      int64  `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Repository string `query:"selected_repository" maxLength:"500" doc:"Only conversations on this repository."`
	Trigger    string `query:"conversation_trigger" enum:"resolver,gui,suggested_task,openhands_api,slack,microagent_management,jira,jira_dc,linear,bitbucket" doc:"Only conversations with this trigger."`
	Status     string `query:"status" enum:"STARTING,RUNNING,STOPPED" doc:"Only conversations with this status."`
	Text       string `query:"query" maxLength:"200" doc:"Only conversations whose title, repository or ID contains this text, ignoring case."`
}

func (d *Handlers) listConversations(ctx context.Context, c *rest.Call, q listQuery, _ rest.None) (api.ConversationPage, error) {
	before, err := openCursor(q.PageID)
	if err != nil {
		return api.ConversationPage{}, err
	}
	limit := int(q.Limit)
	rows, err := d.Index.Rows(ctx, session.Query{Owner: c.Who.User, Repository: q.Repository, Trigger: q.Trigger,
		Status: session.Status(q.Status), Text: q.Text, Before: before, Limit: limit + 1})
	if err != nil {
		return api.ConversationPage{}, err
	}
	page := api.ConversationPage{Results: []api.Conversation{}}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		page.NextPageID = new(closeCursor(session.Cursor{CreatedAt: last.CreatedAt, ID: last.ID}))
	}
	for _, r := range rows {
		page.Results = append(page.Results, d.describeRow(r))
	}
	return page, nil
}

// closeCursor and openCursor make a page id: the place of the last row, so
// that what is created or deleted meanwhile shifts nothing.
func closeCursor(c session.Cursor) string {
	b, _ := json.Marshal([2]any{c.CreatedAt.UnixMicro(), c.ID})
	return base64.RawURLEncoding.EncodeToString(b)
}

func openCursor(text string) (*session.Cursor, error) {
	if text == "" {
		return nil, nil
	}
	var at int64
	var id session.ID
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &[2]any{&at, &id})
	}
	if err != nil || id.Check() != nil {
		return nil, &api.ValidationError{Detail: []api.FieldError{{Loc: []any{"query", "page_id"}, Type: "value_error",
			Msg: "page_id is not a cursor returned by this server."}}}
	}
	return &session.Cursor{CreatedAt: time.UnixMicro(at).UTC(), ID: id}, nil
}

func (d *Handlers) getConversation(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Conversation, error) {
	r, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.Conversation{}, err
	}
	out := d.describeRow(r)
	out.SessionAPIKey = d.PageKey(c)
	return out, nil
}

func (d *Handlers) describeRow(r session.Row) api.Conversation {
	out := api.Conversation{
		ConversationID: string(r.ID), Title: r.Title, LastUpdatedAt: r.UpdatedAt, Status: string(r.Shown()), AgentState: string(r.Agent),
		ErrorID: rest.OrNull(r.ErrorID), Reason: rest.OrNull(r.Reason), SelectedRepository: rest.OrNull(r.Repository), SelectedBranch: rest.OrNull(r.Branch),
		GitProvider: rest.OrNull(r.Provider), Trigger: rest.OrNull(r.Trigger), NumConnections: d.Hub.Following(r.ID), CreatedAt: r.CreatedAt,
		PRNumber: []int{}, PullRequests: []api.PullRequest{}, LastEventID: r.Last, AccumulatedCost: r.Totals.Cost.Dollars(),
	}
	for _, p := range r.Requests {
		out.PRNumber = append(out.PRNumber, p.Number)
		out.PullRequests = append(out.PullRequests, api.PullRequest(p))
	}
	if r.Status == session.Halted {
		out.RuntimeStatus = rest.OrNull(r.ErrorID)
		return out
	}
	step := r.Step
	if r.Status == session.Starting && step == "" { // not taken up yet
		step = "starting"
	}
	// Legacy front ends ask again only while a conversation starts: with RUNNING they
	// would show a step for minutes, so Shown says STARTING then.
	out.RuntimeStatus, out.URL = new(v0.StepStatus(step)), new(d.Prefix+"/api/conversations/"+string(r.ID))
	return out
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
	return response(p.ID, nil, st.Status()), err
}

func (d *Handlers) stopConversation(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.ConversationResponse, error) {
	message := "Conversation was not running"
	st, stopped, err := d.Service.Stop(ctx, c.Who.User, session.ID(p.ID), usecase.StoppedByUser)
	if stopped {
		message = "Conversation stopped successfully"
	}
	if err == nil {
		d.Stopped(session.ID(p.ID), st.Halt)
	}
	return response(p.ID, &message, st.Status()), err
}

func response(id string, message *string, status session.Status) api.ConversationResponse {
	return api.ConversationResponse{Status: "ok", ConversationID: id, Message: message, ConversationStatus: new(string(status))}
}

type microagentListQuery struct {
	Repository string `query:"selected_repository" required:"true" maxLength:"500"`
	PageID     string `query:"page_id" maxLength:"500" doc:"Cursor: next_page_id of the previous page."`
	Limit      int64  `query:"limit" default:"20" minimum:"1" maximum:"100"`
}

func (d *Handlers) microagentConversations(ctx context.Context, c *rest.Call, q microagentListQuery, _ rest.None) (api.ConversationPage, error) {
	return d.listConversations(ctx, c, listQuery{PageID: q.PageID, Limit: q.Limit, Repository: q.Repository, Trigger: "microagent_management"}, rest.None{})
}
