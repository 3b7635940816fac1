package native

import (
	"encoding/json"
	"slices"
	"strings"

	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// legacyEvent is an event of a legacy server, as far as it means something here.
type legacyEvent struct {
	Source      string          `json:"source"`
	Action      string          `json:"action"`
	Args        json.RawMessage `json:"args"`
	Observation string          `json:"observation"`
	Content     string          `json:"content"`
	Extras      json.RawMessage `json:"extras"`
	Call        struct {
		Name     string `json:"function_name"`
		ID       string `json:"tool_call_id"`
		Response struct {
			Choices []struct {
				Message struct {
					Content string `json:"content"`
					Calls   []struct {
						ID       string `json:"id"`
						Function struct {
							Arguments string `json:"arguments"`
						} `json:"function"`
					} `json:"tool_calls"`
				} `json:"message"`
			} `json:"choices"`
		} `json:"model_response"`
	} `json:"tool_call_metadata"`
	Metrics struct {
		Cost  float64 `json:"accumulated_cost"`
		Usage struct {
			Model      string `json:"model"`
			Input      int64  `json:"prompt_tokens"`
			Output     int64  `json:"completion_tokens"`
			CacheRead  int64  `json:"cache_read_tokens"`
			CacheWrite int64  `json:"cache_write_tokens"`
			Window     int64  `json:"context_window"`
			Turn       int64  `json:"per_turn_token"`
		} `json:"accumulated_token_usage"`
	} `json:"llm_metrics"`
}

// legacyArgs are those arguments of actions that mean something here.
type legacyArgs struct {
	Content      string   `json:"content"`
	Command      string   `json:"command"`
	AgentClass   string   `json:"agent_class"`
	Images       []string `json:"image_urls"`
	Files        []string `json:"file_urls"`
	Thought      string   `json:"thought"`
	Final        string   `json:"final_thought"`
	Summary      string   `json:"summary"`
	From         int64    `json:"forgotten_events_start_id"`
	To           int64    `json:"forgotten_events_end_id"`
	Confirmation string   `json:"confirmation_state"`
	Risk         *int     `json:"security_risk"`
	// Name and Arguments are those of a call of a tool server.
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Steps     string          `json:"browser_actions"`
}

// legacyExtras are those extras of observations that mean something here.
type legacyExtras struct {
	State     session.AgentState  `json:"agent_state"`
	Reason    string              `json:"reason"`
	ErrorID   string              `json:"error_id"`
	Command   string              `json:"command"`
	Metadata  json.RawMessage     `json:"metadata"`
	Knowledge []session.Knowledge `json:"microagent_knowledge"`
	Path      string              `json:"path"`
	// Name and Arguments are those of a call of a tool server.
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// readImported returns what says the same as an event that was taken over from a legacy
// server: none, one, or an answer and the call that it made. What is not understood is none.
func readImported(p session.Imported) []session.Payload {
	var e legacyEvent
	_ = json.Unmarshal(p.Event, &e) // a field of an unexpected type is left out
	switch {
	case e.Observation == "agent_state_changed":
		return []session.Payload{e.state()}
	case e.Observation != "" && e.Observation != "null":
		return e.observed(p.Cause)
	case e.Action != "":
		return e.acted(p)
	}
	return nil
}

func (e legacyEvent) totals() session.Totals {
	u := e.Metrics.Usage
	return session.Totals{Cost: session.FromDollars(e.Metrics.Cost), Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Model: u.Model}
}

func (e legacyEvent) usage() session.Usage {
	return session.Usage{Input: e.Metrics.Usage.Turn, Window: e.Metrics.Usage.Window}
}

// acted reads an action.
func (e legacyEvent) acted(p session.Imported) []session.Payload {
	var a legacyArgs
	_ = json.Unmarshal(e.Args, &a)
	switch {
	case e.Action == "message" && e.Source == "user":
		return []session.Payload{session.UserSaid{Text: a.Content, Images: a.Images, Files: a.Files}}
	case e.Action == "message":
		return []session.Payload{session.ModelAnswered{Text: a.Content, Totals: e.totals(), Usage: e.usage()}}
	case e.Action == "system":
		return []session.Payload{session.Briefed{Prompt: a.Content, Agent: a.AgentClass}}
	case e.Action == "condensation" && p.Condensed != nil: // in our numbers
		return []session.Payload{*p.Condensed}
	case e.Action == "condensation":
		return []session.Payload{session.Condensed{From: a.From, To: a.To, Summary: a.Summary}}
	case e.Action == "run" && e.Source == "user":
		return []session.Payload{session.CommandTyped{Command: a.Command}}
	}
	c, said := e.call(a)
	if c.Name == "" {
		return nil
	}
	called := session.ToolCalled{ToolCall: c, Thought: said, Totals: e.totals(), Usage: e.usage(), Risk: session.RiskUnknown, Awaits: a.Confirmation == "awaiting_confirmation"}
	if a.Risk != nil {
		called.Risk = session.Risk(max(-1, min(*a.Risk, 2)))
	}
	out := []session.Payload{called}
	if said != "" {
		out = []session.Payload{session.ModelAnswered{Text: said, ToolCalls: []session.ToolCall{c}, Totals: e.totals(), Usage: e.usage()}, called}
	}
	if e.Action == "finish" { // legacy servers record no result of it
		out = append(out, session.ToolReturned{ID: c.ID, Name: c.Name, Outcome: session.Succeeded, Args: c.Args, Ends: true})
	}
	return out
}

// unshown are the actions and observations that are no call of a tool.
var unshown = []string{"change_agent_state", "recall", "null", "error", "user_rejected"}

// toolOf names the tool behind an action or an observation, for events that do not name it;
// "" if there is none. One that no tool declares is shown as a tool of its own name.
func toolOf(kind string) string {
	if d, _, ok := tool.ForAction(kind); ok {
		return d.Name
	}
	if slices.Contains(unshown, kind) {
		return ""
	}
	return kind
}

// foreignAction is a call of a tool that is not ours; its name is in the arguments.
const foreignAction = "call_tool_mcp"

// call is the call behind an action, as the model wrote it if that was recorded, and what
// the model said beside it.
func (e legacyEvent) call(a legacyArgs) (c session.ToolCall, said string) {
	c = session.ToolCall{ID: e.Call.ID, Name: e.Call.Name, Args: e.Args}
	if c.Name == "" {
		c.Name = toolOf(e.Action)
	}
	if e.Action == foreignAction && a.Name != "" {
		c.Name, c.Args = a.Name, a.Arguments
	}
	if len(e.Call.Response.Choices) > 0 {
		m := e.Call.Response.Choices[0].Message
		for _, made := range m.Calls {
			if made.ID == c.ID && json.Valid([]byte(made.Function.Arguments)) {
				c.Args = json.RawMessage(made.Function.Arguments)
				return c, m.Content
			}
		}
	}
	switch e.Action {
	case "think":
		return c, ""
	case "finish":
		message := a.Final
		if message == "" {
			message = a.Thought
		}
		c.Args, _ = json.Marshal(map[string]string{"message": message}) // strings are always JSON
		return c, ""
	case "browse_interactive":
		c.Args, _ = json.Marshal(map[string]string{"code": a.Steps})
	case "read":
		c.Args = with(c.Args, "view")
	case "write":
		c.Args = with(c.Args, "create")
	}
	return c, a.Thought
}

// with adds the command of the editor that an action stands for.
func with(raw json.RawMessage, command string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || all == nil {
		return raw
	}
	all["command"], _ = json.Marshal(command)
	out, err := json.Marshal(all)
	if err != nil {
		return raw
	}
	return out
}

// state reads a new state of the agent.
func (e legacyEvent) state() session.Payload {
	var x legacyExtras
	_ = json.Unmarshal(e.Extras, &x)
	switch x.State {
	case session.AgentPaused:
		return session.Paused{}
	case session.AgentStopped:
		return session.Stopped{Reason: x.Reason}
	case session.AgentError, session.AgentFinished, session.AgentAwaitingUser, session.AgentRejected:
		return session.TurnEnded{State: x.State, Reason: x.Reason, ErrorID: x.ErrorID}
	case session.AgentRunning:
		return session.TurnBegan{}
	}
	return session.StateChanged{State: x.State, Reason: x.Reason}
}

// observed reads what came of something.
func (e legacyEvent) observed(cause int64) []session.Payload {
	var x legacyExtras
	_ = json.Unmarshal(e.Extras, &x)
	if e.Observation == "recall" {
		return []session.Payload{session.Recalled{Items: x.Knowledge, Details: e.Extras}}
	}
	r := session.ToolReturned{ID: e.Call.ID, Name: e.Call.Name, Cause: cause, Outcome: session.Succeeded, Output: e.Content, Details: e.Extras}
	if r.Name == "" {
		r.Name = toolOf(e.Observation)
	}
	switch e.Observation {
	case "error":
		r.Outcome = session.FailedRun
	case "user_rejected":
		r.Outcome = session.Rejected
	case "mcp":
		if x.Name != "" {
			r.Name, r.Args = x.Name, x.Arguments
		}
		r.Output, r.Outcome, r.Details = foreign(e.Content)
	case "read":
		r.Args, _ = json.Marshal(map[string]string{"command": "view", "path": x.Path})
	case "run":
		r.Details = x.Metadata
		r.Args, _ = json.Marshal(map[string]string{"command": x.Command})
		var exit struct {
			Code int `json:"exit_code"`
		}
		if json.Unmarshal(x.Metadata, &exit) == nil && exit.Code > 0 {
			r.Outcome = session.FailedRun
		}
	}
	return []session.Payload{r}
}

// foreign is the text of what a tool server answered, and the whole answer as details.
func foreign(raw string) (string, session.Outcome, json.RawMessage) {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Failed bool `json:"isError"`
	}
	if json.Unmarshal([]byte(raw), &result) != nil {
		return raw, session.Succeeded, nil
	}
	var parts []string
	for _, c := range result.Content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		} else {
			parts = append(parts, "("+c.Type+")")
		}
	}
	whole, _ := json.Marshal(map[string]json.RawMessage{"result": json.RawMessage(raw)}) // raw was read
	if result.Failed {
		return strings.Join(parts, "\n"), session.FailedRun, whole
	}
	return strings.Join(parts, "\n"), session.Succeeded, whole
}
