package query

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

// Conversation names one conversation. The tags are the limits that every entry point checks.
type Conversation struct {
	ID string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
}

// Get is a conversation of a user.
func (r *Reader) Get(ctx context.Context, user string, id session.ID) (api.Conversation, error) {
	row, err := r.Conversations.Row(ctx, user, id)
	if err != nil {
		return api.Conversation{}, err
	}
	return r.Describe(row), nil
}

// List asks for a page of a user's conversations. The tags are the limits that every entry point checks.
type List struct {
	PageID     string `query:"page_id" maxLength:"500" doc:"Cursor: next_page_id of the previous page."`
	Limit      int64  `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Repository string `query:"selected_repository" maxLength:"500" doc:"Only conversations on this repository."`
	Trigger    string `query:"conversation_trigger" enum:"resolver,gui,suggested_task,openhands_api,slack,microagent_management,jira,jira_dc,linear,bitbucket" doc:"Only conversations with this trigger."`
	Status     string `query:"status" enum:"STARTING,RUNNING,STOPPED" doc:"Only conversations with this status."`
	Text       string `query:"query" maxLength:"200" doc:"Only conversations whose title, repository or ID contains this text, ignoring case."`
}

// List is a page of a user's conversations, newest first.
func (r *Reader) List(ctx context.Context, user string, q List) (api.ConversationPage, error) {
	before, err := openCursor(q.PageID)
	if err != nil {
		return api.ConversationPage{}, err
	}
	limit := int(q.Limit)
	rows, err := r.Conversations.Index.Rows(ctx, session.Query{Owner: user, Repository: q.Repository, Trigger: q.Trigger,
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
	for _, row := range rows {
		page.Results = append(page.Results, r.Describe(row))
	}
	return page, nil
}

// closeCursor and openCursor make a page id: the place of the last row, so
// that sessions that are created or deleted between two pages shift nothing.
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

// Describe is a conversation as its user sees it.
func (r *Reader) Describe(row session.Row) api.Conversation {
	out := api.Conversation{
		ConversationID: string(row.ID), Title: row.Title, LastUpdatedAt: row.UpdatedAt, Status: string(row.Shown()), AgentState: string(row.Agent),
		ErrorID: orNull(row.ErrorID), Reason: orNull(row.Reason), SelectedRepository: orNull(row.Repository), SelectedBranch: orNull(row.Branch),
		GitProvider: orNull(row.Provider), Trigger: orNull(row.Trigger), NumConnections: r.Hub.Following(row.ID), CreatedAt: row.CreatedAt,
		PRNumber: []int{}, PullRequests: []api.PullRequest{}, LastEventID: row.Last, AccumulatedCost: row.Totals.Cost.Dollars(), Queue: r.Conversations.Admission.Place(row.ID),
	}
	for _, p := range row.Requests {
		out.PRNumber = append(out.PRNumber, p.Number)
		out.PullRequests = append(out.PullRequests, api.PullRequest(p))
	}
	if row.Status == session.Halted {
		out.RuntimeStatus = orNull(row.ErrorID)
		return out
	}
	step := row.Step
	if row.Status == session.Starting && step == "" { // not taken up yet
		step = "starting"
	}
	// Legacy front ends ask again only while a conversation starts: with RUNNING they
	// would show a step for minutes, so Shown says STARTING then.
	out.RuntimeStatus, out.URL = new(v0.StepStatus(step)), new(r.Prefix+"/api/conversations/"+string(row.ID))
	return out
}

// orNull is null when there is none.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
