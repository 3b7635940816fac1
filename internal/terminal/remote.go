package terminal

import (
	"encoding/json"
	"strings"

	"deckhand/internal/session"
)

// wire is an event or a status as a server tells it, as far as it is shown.
type wire struct {
	ID          int64           `json:"id"`
	Source      string          `json:"source"`
	Message     string          `json:"message"`
	Cause       int64           `json:"cause"`
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
	Metrics *struct {
		Cost  float64 `json:"accumulated_cost"`
		Usage struct {
			Input      int64 `json:"prompt_tokens"`
			Output     int64 `json:"completion_tokens"`
			CacheRead  int64 `json:"cache_read_tokens"`
			CacheWrite int64 `json:"cache_write_tokens"`
		} `json:"accumulated_token_usage"`
	} `json:"llm_metrics"`
}

// wireArgs are those arguments of actions that mean something here.
type wireArgs struct {
	Content      string   `json:"content"`
	Images       []string `json:"image_urls"`
	Files        []string `json:"file_urls"`
	Thought      string   `json:"thought"`
	Final        string   `json:"final_thought"`
	Summary      string   `json:"summary"`
	Confirmation string   `json:"confirmation_state"`
	Risk         *int     `json:"security_risk"`
}

// ReadEvent is what an event of a server's stream stands for, as the facts that
// a Display shows: none, one, or an answer and the call that it made. What is
// not understood is none.
func ReadEvent(raw []byte) []session.Payload {
	var w wire
	_ = json.Unmarshal(raw, &w) // a field of a kind that nobody expects is left out
	switch {
	case w.Observation == "agent_state_changed":
		return []session.Payload{w.state()}
	case w.Observation != "":
		return w.observed()
	case w.Action != "":
		return w.acted()
	}
	return nil
}

func (w wire) totals() session.Totals {
	if w.Metrics == nil {
		return session.Totals{}
	}
	u := w.Metrics.Usage
	return session.Totals{Cost: session.FromDollars(w.Metrics.Cost), Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
}

// acted reads an action.
func (w wire) acted() []session.Payload {
	var a wireArgs
	_ = json.Unmarshal(w.Args, &a)
	switch {
	case w.Action == "message" && w.Source == "user":
		return []session.Payload{session.UserSaid{Text: a.Content, Images: a.Images, Files: a.Files}}
	case w.Action == "message":
		return []session.Payload{session.ModelAnswered{Text: a.Content, Totals: w.totals()}}
	case w.Action == "condensation":
		return []session.Payload{session.Condensed{Summary: a.Summary}}
	}
	c, said := w.call(a)
	if c.Name == "" {
		return nil
	}
	called := session.ToolCalled{ToolCall: c, Thought: said, Totals: w.totals(), Risk: session.RiskUnknown, Awaits: a.Confirmation == "awaiting_confirmation"}
	if a.Risk != nil {
		called.Risk = session.Risk(*a.Risk)
	}
	out := []session.Payload{called}
	if said != "" {
		out = []session.Payload{session.ModelAnswered{Text: said, Totals: w.totals()}, called}
	}
	if c.Name == "finish" { // nothing comes of it that a server would tell
		out = append(out, session.ToolReturned{ID: c.ID, Name: c.Name, Outcome: session.Succeeded, Args: c.Args})
	}
	return out
}

// tools are those that actions and observations are made of, for events of
// another server, which do not always name them.
var tools = map[string]string{
	"run": "execute_bash", "run_ipython": "execute_ipython_cell", "read": "str_replace_editor", "edit": "str_replace_editor", "write": "str_replace_editor",
	"browse": "fetch", "browse_interactive": "browser", "think": "think", "task_tracking": "task_tracker", "delegate": "delegate", "finish": "finish",
	"condensation_request": "request_condensation", "call_tool_mcp": "call_tool_mcp",
}

// call is the call behind an action, as the model wrote it if that is told, and
// what the model said beside it.
func (w wire) call(a wireArgs) (c session.ToolCall, said string) {
	c = session.ToolCall{ID: w.Call.ID, Name: w.Call.Name, Args: w.Args}
	if c.Name == "" {
		c.Name = tools[w.Action]
	}
	if len(w.Call.Response.Choices) > 0 {
		m := w.Call.Response.Choices[0].Message
		for _, made := range m.Calls {
			if made.ID == c.ID && json.Valid([]byte(made.Function.Arguments)) {
				c.Args = json.RawMessage(made.Function.Arguments)
				return c, m.Content
			}
		}
	}
	switch w.Action {
	case "think":
		return c, ""
	case "finish":
		c.Args, _ = json.Marshal(map[string]string{"message": or(a.Final, a.Thought)})
		return c, ""
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

// wireExtras are those extras of observations that mean something here.
type wireExtras struct {
	State   session.AgentState `json:"agent_state"`
	Reason  string             `json:"reason"`
	ErrorID string             `json:"error_id"`

	Command  string `json:"command"`
	Metadata *struct {
		Exit   int    `json:"exit_code"`
		Suffix string `json:"suffix"`
	} `json:"metadata"`
	Diff      string              `json:"diff"`
	Knowledge []session.Knowledge `json:"microagent_knowledge"`
}

// state reads a new state of the agent.
func (w wire) state() session.Payload {
	var x wireExtras
	_ = json.Unmarshal(w.Extras, &x)
	switch x.State {
	case session.AgentAwaitingYes:
		return session.ApprovalAsked{Reason: x.Reason}
	case session.AgentUserYes, session.AgentUserNo:
		return session.ApprovalGiven{Approved: x.State == session.AgentUserYes, Reason: x.Reason}
	case session.AgentPaused:
		return session.Paused{}
	case session.AgentStopped:
		return session.Stopped{Reason: x.Reason}
	case session.AgentError, session.AgentFinished, session.AgentAwaitingUser, session.AgentRejected:
		return session.TurnEnded{State: x.State, Reason: x.Reason, ErrorID: x.ErrorID}
	case session.AgentRunning:
		return session.TurnBegan{}
	case session.AgentRateLimited:
		if x.ErrorID != "" { // it waited often enough, and gave up
			return session.TurnEnded{State: x.State, Reason: x.Reason, ErrorID: x.ErrorID}
		}
	}
	return session.StateChanged{State: x.State, Reason: x.Reason}
}

// observed reads what came of something.
func (w wire) observed() []session.Payload {
	var x wireExtras
	_ = json.Unmarshal(w.Extras, &x)
	switch {
	case w.Observation == "recall":
		return []session.Payload{session.Recalled{Items: x.Knowledge}}
	case w.Observation == "run" && w.Source == "environment" && w.Call.ID == "" && x.Metadata != nil:
		return []session.Payload{session.SetUp{Script: strings.TrimPrefix(x.Command, ". ./"), Exit: x.Metadata.Exit, Output: w.Content, Problem: x.Metadata.Suffix}}
	}
	r := session.ToolReturned{ID: w.Call.ID, Name: w.Call.Name, Cause: w.Cause, Outcome: session.Succeeded, Output: w.Content}
	if r.Name == "" {
		r.Name = tools[w.Observation]
	}
	switch w.Observation {
	case "error":
		r.Outcome = session.FailedRun
	case "user_rejected":
		r.Outcome = session.Rejected
	case "mcp":
		r.Output, r.Outcome = foreign(w.Content)
	case "run":
		if x.Metadata != nil {
			r.Details, _ = json.Marshal(details{ExitCode: &x.Metadata.Exit, Suffix: x.Metadata.Suffix})
		}
	case "edit":
		if x.Diff != "" {
			r.Details, _ = json.Marshal(details{Diff: &x.Diff})
		}
	}
	return []session.Payload{r}
}

// foreign is the text of what a tool server answered.
func foreign(raw string) (string, session.Outcome) {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Failed bool `json:"isError"`
	}
	if json.Unmarshal([]byte(raw), &result) != nil {
		return raw, session.Succeeded
	}
	var parts []string
	for _, c := range result.Content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		} else {
			parts = append(parts, "("+c.Type+")")
		}
	}
	if result.Failed {
		return strings.Join(parts, "\n"), session.FailedRun
	}
	return strings.Join(parts, "\n"), session.Succeeded
}

// early is the beginning of an answer that came before the result of the call
// which it is about: fragments may overtake events.
type early struct {
	call string
	text strings.Builder
}

// Remote shows what ReadEvent made of an event. A server does not say which
// answer is the end of what was shown while it was written; the words do.
func (d *Display) Remote(number int64, all []session.Payload) {
	for _, p := range all {
		if a, ok := p.(session.ModelAnswered); ok && a.Call == "" {
			d.release()
			if d.call != "" && strings.HasPrefix(a.Text, d.said.String()) {
				a.Call = d.call
			}
			p = a
		}
		d.Event(session.Event{Number: number, Payload: p})
	}
	if d.output == nil {
		d.release()
	}
}

// release shows what came early.
func (d *Display) release() {
	call, text := d.early.call, d.early.text.String()
	d.early = early{}
	if text != "" {
		d.Delta(call, text)
	}
}

// RemoteDelta shows more of what is being written. offset is where the text
// begins; what was shown before a connection was lost comes again.
func (d *Display) RemoteDelta(call string, offset int64, text string) {
	have := int64(0)
	held := d.output != nil && call != d.tool.ID
	switch {
	case held && call == d.early.call:
		have = int64(d.early.text.Len())
	case held:
		d.early = early{call: call}
	case d.output != nil:
		have = d.output.seen
	case call == d.call:
		have = int64(d.said.Len())
	}
	if again := have - offset; again > 0 {
		if again >= int64(len(text)) {
			return
		}
		text = text[again:]
	}
	if held {
		d.early.text.WriteString(text)
		return
	}
	d.Delta(call, text)
}

// RemoteStatus shows a notice beside the history.
func (d *Display) RemoteStatus(kind, id, message string) {
	switch {
	case id == "STATUS$ERROR" || strings.HasPrefix(id, "STATUS$ERROR_LLM") || strings.HasPrefix(id, "CHAT_INTERFACE$"):
		d.Status(message) // of a model call: it is made again, or the end of the turn says why
	case kind == "error":
		d.Problem(message)
	case strings.HasPrefix(id, "STATUS$BUILDING") || strings.HasPrefix(id, "STATUS$STARTING") || strings.HasPrefix(id, "STATUS$SETTING_UP"):
		step := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(id, "STATUS$"), "_", " "))
		d.Status("sandbox: " + strings.TrimSpace(step+" "+message))
	case message != "":
		d.Notice(message)
	}
}
