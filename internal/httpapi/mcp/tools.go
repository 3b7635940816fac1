package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
	"deckhand/internal/httpapi/status"
	"deckhand/internal/live"
	"deckhand/internal/session"
)

// The arguments of Deckhand's own tools. The routes validate them; the schemas generated from these types only guide models.
type (
	createArgs struct {
		Message      string `json:"message" jsonschema:"The task for the agent."`
		Repository   string `json:"repository,omitempty" jsonschema:"Repository to work on, as owner/name."`
		Branch       string `json:"branch,omitempty" jsonschema:"Branch to check out."`
		Instructions string `json:"instructions,omitempty" jsonschema:"Additional instructions for the agent, for the whole conversation."`
		RequestID    string `json:"request_id,omitempty" jsonschema:"Unique text chosen by you, which makes the call safe to retry: the same request_id and arguments do not create a second conversation."`
	}
	sendArgs struct {
		ConversationID string `json:"conversation_id"`
		Message        string `json:"message"`
		RequestID      string `json:"request_id,omitempty" jsonschema:"Unique text chosen by you, which makes the call safe to retry: the same request_id and arguments do not send the message twice."`
	}
	eventsArgs struct {
		ConversationID string `json:"conversation_id"`
		After          int64  `json:"after,omitempty" jsonschema:"Number of the last event already read; 0 starts with the first event."`
		Limit          int64  `json:"limit,omitempty" jsonschema:"Maximum number of results, 1 to 100. Default: 20."`
	}
	oneArgs struct {
		ConversationID string `json:"conversation_id"`
	}
	listArgs struct {
		Status string `json:"status,omitempty" jsonschema:"Only conversations with this status: STARTING, RUNNING or STOPPED."`
		Query  string `json:"query,omitempty" jsonschema:"Only conversations whose title, repository or ID contains this text."`
		PageID string `json:"page_id,omitempty" jsonschema:"Cursor: next_page_id of the previous page."`
		Limit  int64  `json:"limit,omitempty" jsonschema:"Maximum number of results, 1 to 100. Default: 20."`
	}
	waitArgs struct {
		ConversationID string `json:"conversation_id"`
		TimeoutS       int64  `json:"timeout_s,omitempty" jsonschema:"Maximum time to wait in seconds, 1 to 300. Default: 60."`
	}
)

// addOwnTools adds the tools. Each runs one use case or one query.
func addOwnTools(s *sdk.Server) {
	yes := true
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true}
	own(s, &sdk.Tool{Name: "create_conversation", Description: "Create a conversation with an agent and give it a task. Returns the conversation_id immediately, while the agent works in the background."},
		func(v *visit, a createArgs) (json.RawMessage, error) { return v.create(a) })
	own(s, &sdk.Tool{Name: "send_message", Description: "Send a message to a conversation. It is queued while the agent is working."},
		func(v *visit, a sendArgs) (json.RawMessage, error) { return v.send(a) })
	own(s, &sdk.Tool{Name: "read_events", Annotations: reads, Description: "Read the events of a conversation in order: messages, agent actions and their results."},
		func(v *visit, a eventsArgs) (json.RawMessage, error) { return v.events(a) })
	own(s, &sdk.Tool{Name: "get_conversation", Annotations: reads, Description: "Get a conversation: its status, the agent state, and the reason if it failed."},
		func(v *visit, a oneArgs) (json.RawMessage, error) { return v.get(a.ConversationID) })
	own(s, &sdk.Tool{Name: "list_conversations", Annotations: reads, Description: "List your conversations, newest first."},
		func(v *visit, a listArgs) (json.RawMessage, error) { return v.list(a) })
	own(s, &sdk.Tool{Name: "stop_conversation", Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &yes}, Description: "Stop a conversation and abort what the agent is doing."},
		func(v *visit, a oneArgs) (json.RawMessage, error) { return v.stop(a.ConversationID) })
	own(s, &sdk.Tool{Name: "wait_for_turn", Annotations: reads, Description: "Wait until the agent finishes or needs input, and return the conversation. After the timeout the conversation is returned in its current state; see agent_state."},
		func(v *visit, a waitArgs) (json.RawMessage, error) {
			if err := v.wait(a); err != nil {
				return nil, err
			}
			return v.get(a.ConversationID)
		})
	addProposing(s)
}

// limitOf returns the page size; 0 means the default.
func limitOf(n int64) int64 {
	if n == 0 {
		return 20
	}
	return n
}

// own adds a tool whose result is the route's answer. An error becomes a result
// too, so that the model can react to it.
func own[A any](s *sdk.Server, t *sdk.Tool, run func(v *visit, a A) (json.RawMessage, error)) {
	sdk.AddTool(s, t, func(ctx context.Context, _ *sdk.CallToolRequest, a A) (*sdk.CallToolResult, any, error) {
		v, ok := ctx.Value(visitKey{}).(*visit)
		if !ok {
			return nil, nil, errors.New("tool call without a request context")
		}
		out, err := run(v, a)
		if err != nil {
			f := status.Of(err)
			if f.Status >= 500 {
				v.api.Logger.ErrorContext(ctx, "tool call failed", "tool", t.Name, "error", err)
			}
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: f.Msg}},
				StructuredContent: api.Problem{Error: f.Msg, MsgID: f.Code}}, nil, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(out)}}, StructuredContent: out}, nil, nil
	})
}

// recheck is how often a turn that is waited for is looked at when nothing is heard of it.
const recheck = 5 * time.Second

// wait waits for the end of a turn, within the caller's patience.
func (v *visit) wait(a waitArgs) error {
	if a.TimeoutS == 0 {
		a.TimeoutS = 60
	}
	if a.TimeoutS < 1 || a.TimeoutS > 300 {
		return api.Invalid("value_error", "Must be a number of seconds from 1 to 300.", "timeout_s")
	}
	row, err := v.api.Conversations.Row(v.ctx, v.call.Who.User, session.ID(a.ConversationID))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(v.ctx, time.Duration(a.TimeoutS)*time.Second)
	defer cancel()
	for {
		st, err := v.api.Sessions.Load(ctx, row.ID)
		if err == nil && settled(st) {
			return nil
		}
		if err == nil {
			err = v.listen(ctx, st)
		}
		switch {
		case v.ctx.Err() != nil:
			return context.Cause(v.ctx)
		case ctx.Err() != nil: // long enough
			return nil
		case err != nil:
			return err
		}
	}
}

// listen waits until there is something new, or for a while.
func (v *visit) listen(ctx context.Context, st session.State) error {
	for f, err := range v.api.Hub.Follow(ctx, st.ID, st.Last, live.FollowOptions{Heartbeat: recheck}) {
		if err != nil || f.Event != live.EventDelta {
			return err
		}
	}
	return nil
}

// settled is true when the agent waits for input.
func settled(st session.State) bool {
	switch {
	case st.Deleted, st.Stopped, st.Failed, st.Paused, st.Agent == session.AgentAwaitingYes:
		return true
	}
	return !st.InTurn && !st.Pending()
}
