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

// The arguments of our own tools. The schemas of the routes say what is allowed; those made of these only help models to write them.
type (
	createArgs struct {
		Message      string `json:"message" jsonschema:"The task for the agent."`
		Repository   string `json:"repository,omitempty" jsonschema:"Repository to work on, as owner/name."`
		Branch       string `json:"branch,omitempty" jsonschema:"Branch to check out."`
		Instructions string `json:"instructions,omitempty" jsonschema:"Extra instructions for the whole conversation."`
		RequestID    string `json:"request_id,omitempty" jsonschema:"Any text of your own. Sent again with the same arguments it makes no second conversation."`
	}
	sendArgs struct {
		ConversationID string `json:"conversation_id"`
		Message        string `json:"message"`
		RequestID      string `json:"request_id,omitempty" jsonschema:"Any text of your own. Sent again with the same arguments nothing is said twice."`
	}
	eventsArgs struct {
		ConversationID string `json:"conversation_id"`
		After          int64  `json:"after,omitempty" jsonschema:"Number of the last event you know; 0 begins with the first."`
		Limit          int64  `json:"limit,omitempty" jsonschema:"How many at most, 1 to 100; 20 if left out."`
	}
	oneArgs struct {
		ConversationID string `json:"conversation_id"`
	}
	listArgs struct {
		Status string `json:"status,omitempty" jsonschema:"Only conversations that are STARTING, RUNNING or STOPPED."`
		Query  string `json:"query,omitempty" jsonschema:"Only conversations with this in their title."`
		PageID string `json:"page_id,omitempty" jsonschema:"next_page_id of the page before."`
		Limit  int64  `json:"limit,omitempty" jsonschema:"How many at most, 1 to 100; 20 if left out."`
	}
	waitArgs struct {
		ConversationID string `json:"conversation_id"`
		TimeoutS       int64  `json:"timeout_s,omitempty" jsonschema:"How many seconds to wait at most, 1 to 300; 60 if left out."`
	}
)

// addOwnTools makes the tools. Each is one use case or one query.
func addOwnTools(s *sdk.Server) {
	yes := true
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true}
	own(s, &sdk.Tool{Name: "create_conversation", Description: "Create a conversation with an agent and give it a task. Returns the conversation_id immediately, while the agent works in the background."},
		func(v *visit, a createArgs) (json.RawMessage, error) { return v.create(a) })
	own(s, &sdk.Tool{Name: "send_message", Description: "Send a message to a conversation. It is queued while the agent is working."},
		func(v *visit, a sendArgs) (json.RawMessage, error) { return v.send(a) })
	own(s, &sdk.Tool{Name: "read_events", Annotations: reads, Description: "Read the events of a conversation in order: messages, agent actions and their results."},
		func(v *visit, a eventsArgs) (json.RawMessage, error) {
			return toolResult(v.api.Queries.Events(v.ctx, v.asker(), a.ConversationID, max(a.After, 0)+1, limitOf(a.Limit)))
		})
	own(s, &sdk.Tool{Name: "get_conversation", Annotations: reads, Description: "Get a conversation: its status, the agent state, and the reason if it failed."},
		func(v *visit, a oneArgs) (json.RawMessage, error) {
			return toolResult(v.api.Queries.Conversation(v.ctx, v.asker(), a.ConversationID))
		})
	own(s, &sdk.Tool{Name: "list_conversations", Annotations: reads, Description: "List your conversations, newest first."},
		func(v *visit, a listArgs) (json.RawMessage, error) {
			return toolResult(v.api.Queries.List(v.ctx, v.asker(), a.Status, a.Query, a.PageID, limitOf(a.Limit)))
		})
	own(s, &sdk.Tool{Name: "stop_conversation", Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &yes}, Description: "Stop a conversation and abort what the agent is doing."},
		func(v *visit, a oneArgs) (json.RawMessage, error) {
			return toolResult(v.api.Queries.Stop(v.ctx, v.asker(), a.ConversationID))
		})
	own(s, &sdk.Tool{Name: "wait_for_turn", Annotations: reads, Description: "Wait until the agent finishes or needs input, and return the conversation. After the timeout the conversation is returned in its current state; see agent_state."},
		func(v *visit, a waitArgs) (json.RawMessage, error) {
			if err := v.wait(a); err != nil {
				return nil, err
			}
			return toolResult(v.api.Queries.Conversation(v.ctx, v.asker(), a.ConversationID))
		})
	addProposing(s)
}

// limitOf is the length of a page; 0 is the usual one.
func limitOf(n int64) int64 {
	if n == 0 {
		return 20
	}
	return n
}

// own adds a tool whose result is the route's answer. An error becomes a result
// too: the model is to learn from it.
func own[A any](s *sdk.Server, t *sdk.Tool, run func(v *visit, a A) (json.RawMessage, error)) {
	sdk.AddTool(s, t, func(ctx context.Context, _ *sdk.CallToolRequest, a A) (*sdk.CallToolResult, any, error) {
		v, ok := ctx.Value(visitKey{}).(*visit)
		if !ok {
			return nil, nil, errors.New("nobody asked")
		}
		out, err := run(v, a)
		if err != nil {
			f := status.Of(err)
			if f.Status >= 500 {
				v.api.Logger.Error("tool call failed", "tool", t.Name, "error", err)
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

// settled is true when the agent does nothing until somebody does something.
func settled(st session.State) bool {
	switch {
	case st.Deleted, st.Stopped, st.Failed, st.Paused, st.Agent == session.AgentAwaitingYes:
		return true
	}
	return !st.InTurn && !st.Pending()
}
