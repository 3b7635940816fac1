package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// one names a conversation in a path.
type one struct {
	ID string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
}

// row finds a conversation of the asker's; anybody else's is not there.
func (d *Door) row(ctx context.Context, c *call, id string) (session.Row, error) {
	return d.Conversations.Row(ctx, c.who.User, session.ID(id))
}

type listQuery struct {
	PageID     string `query:"page_id" maxLength:"500" doc:"Cursor: next_page_id of the previous page."`
	Limit      int64  `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Repository string `query:"selected_repository" maxLength:"500" doc:"Only conversations on this repository."`
	Trigger    string `query:"conversation_trigger" enum:"resolver,gui,suggested_task,openhands_api,slack,microagent_management,jira,jira_dc,linear,bitbucket" doc:"Only conversations with this trigger."`
	Status     string `query:"status" enum:"STARTING,RUNNING,STOPPED" doc:"Only conversations with this status."`
	Text       string `query:"query" maxLength:"200" doc:"Only conversations whose title, repository or ID contains this text, ignoring case."`
}

func listConversations(d *Door, ctx context.Context, c *call, q listQuery, _ none) (api.ConversationPage, error) {
	before, err := openCursor(q.PageID)
	if err != nil {
		return api.ConversationPage{}, err
	}
	limit := int(q.Limit)
	rows, err := d.Index.Rows(ctx, session.Query{Owner: c.who.User, Repository: q.Repository, Trigger: q.Trigger,
		Status: session.Status(q.Status), Text: q.Text, Before: before, Limit: limit + 1})
	if err != nil {
		return api.ConversationPage{}, err
	}
	page := api.ConversationPage{Results: []api.Conversation{}}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		page.NextPageID = ptr(closeCursor(session.Cursor{CreatedAt: last.CreatedAt, ID: last.ID}))
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

func getConversation(d *Door, ctx context.Context, c *call, p one, _ none) (api.Conversation, error) {
	r, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.Conversation{}, err
	}
	out := d.describeRow(r)
	out.SessionAPIKey = d.pageKey(c)
	return out, nil
}

func (d *Door) describeRow(r session.Row) api.Conversation {
	out := api.Conversation{
		ConversationID: string(r.ID), Title: r.Title, LastUpdatedAt: r.UpdatedAt, Status: string(r.Shown()), AgentState: string(r.Agent),
		ErrorID: text(r.ErrorID), Reason: text(r.Reason), SelectedRepository: text(r.Repository), SelectedBranch: text(r.Branch),
		GitProvider: text(r.Provider), Trigger: text(r.Trigger), NumConnections: d.Hub.Following(r.ID), CreatedAt: r.CreatedAt,
		PRNumber: []int{}, PullRequests: []api.PullRequest{}, LastEventID: r.Last, AccumulatedCost: r.Totals.Cost.Dollars(),
	}
	for _, p := range r.Requests {
		out.PRNumber = append(out.PRNumber, p.Number)
		out.PullRequests = append(out.PullRequests, api.PullRequest(p))
	}
	if r.Status == session.Halted {
		out.RuntimeStatus = text(r.ErrorID)
		return out
	}
	step := r.Step
	if r.Status == session.Starting && step == "" { // not taken up yet
		step = "starting"
	}
	// Legacy front ends ask again only while a conversation starts: with RUNNING they
	// would show a step for minutes, so Shown says STARTING then.
	out.RuntimeStatus, out.URL = ptr(v0.StepStatus(step)), ptr(d.prefix+"/api/conversations/"+string(r.ID))
	return out
}

func patchConversation(d *Door, ctx context.Context, c *call, p one, b api.PatchConversation) (bool, error) {
	err := d.Conversations.Rename(ctx, c.who.User, session.ID(p.ID), b.Title)
	return err == nil, err
}

func deleteConversation(d *Door, ctx context.Context, c *call, p one, _ none) (bool, error) {
	err := d.Conversations.Delete(ctx, c.who.User, session.ID(p.ID))
	return err == nil, err
}

func startConversation(d *Door, ctx context.Context, c *call, p one, _ api.StartConversation) (api.ConversationResponse, error) {
	st, err := d.Conversations.Start(ctx, c.who.User, session.ID(p.ID))
	return response(p.ID, nil, st.Status()), err
}

func stopConversation(d *Door, ctx context.Context, c *call, p one, _ none) (api.ConversationResponse, error) {
	message := "Conversation was not running"
	st, stopped, err := d.Conversations.Stop(ctx, c.who.User, session.ID(p.ID), usecase.StoppedByUser)
	if stopped {
		message = "Conversation stopped successfully"
	}
	if err == nil {
		d.sockets.endAfter(session.ID(p.ID), st.Halt)
	}
	return response(p.ID, &message, st.Status()), err
}

func response(id string, message *string, status session.Status) api.ConversationResponse {
	return api.ConversationResponse{Status: "ok", ConversationID: id, Message: message, ConversationStatus: ptr(string(status))}
}

func ptr[T any](v T) *T { return &v }

// text is null when there is none.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
