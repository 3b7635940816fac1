package v0

import (
	"fmt"

	"deckhand/internal/session"
	"deckhand/internal/v0/form"
)

// FrameKind is how a frame is sent.
type FrameKind uint8

// An event is part of the history and has a number; a status is a notice; none is for
// events that legacy clients do not know.
const (
	None FrameKind = iota
	Event
	Status
)

// String returns the name of the kind in streams.
func (k FrameKind) String() string {
	switch k {
	case Event:
		return "event"
	case Status:
		return "status"
	default:
		return "none"
	}
}

// Frame is the legacy form of one event. JSON is one line without a line break, and nil
// if Kind is None.
type Frame struct {
	Kind FrameKind
	JSON []byte
}

// Encode translates one event of the session id. It is stateless: the result is the same
// whether the event is live or replayed.
//
// The only error is a payload of an unknown kind; invalid values inside a payload are
// written as well as possible.
func Encode(id session.ID, e session.Event) (Frame, error) {
	switch p := e.Payload.(type) {
	case session.Claimed, session.ModelAsked, session.Deleted, session.Replayed, session.Granted, session.Settled, session.Capped, session.Withdrawn, session.CompactAsked:
		return Frame{}, nil
	case session.RecallAsked:
		return recallAsked(e, p), nil
	case session.Recalled:
		return recalled(e, p), nil
	case session.Nudged:
		return status("info", "STATUS$AGENT_NUDGED", p.Text), nil
	case session.UserSaid:
		return userSaid(e, p), nil
	case session.Briefed:
		return briefed(e, p), nil
	case session.ModelAnswered:
		return modelAnswered(e, p), nil
	case session.ToolCalled:
		return toolCalled(e, p), nil
	case session.ToolReturned:
		return toolReturned(e, p), nil
	case session.CommandTyped:
		return commandTyped(e, p), nil
	case session.CommandEnded:
		return commandEnded(e, p), nil
	case session.Condensed:
		return condensed(e, p), nil
	case session.WorkspaceReady:
		return status("info", "STATUS$READY", ""), nil
	case session.WorkspaceStep:
		if p.Step == "missing" { // the note after it says more
			return Frame{}, nil
		}
		return status("info", StepStatus(p.Step), p.Message), nil
	case session.CheckedOut:
		return checkedOut(p), nil
	case session.SetUp:
		return setUp(e, p), nil
	case session.TrustSet:
		return trustSet(p), nil
	case session.SetUpBegan:
		return setUpBegan(p), nil
	case session.HookSet:
		return hookSet(p), nil
	case session.EgressSet:
		return egressSet(p), nil
	case session.Overridden:
		return overridden(p), nil
	case session.Checkpointed:
		return Frame{}, nil
	case session.Restored:
		return status("info", "STATUS$RESTORED", "An earlier state was restored."), nil
	case session.ModelFailed:
		return modelFailed(e, p), nil
	case session.PauseRequested:
		return status("info", "STATUS$PAUSING", "Pausing after this step."), nil
	case session.Noted:
		return noted(p), nil
	case session.RequestOpened:
		return requestOpened(p), nil
	case session.Titled:
		return titled(id, p), nil
	case session.Imported:
		return imported(e, p), nil
	default:
		return encodeState(e)
	}
}

// encodeState handles the events that clients see as a new state of the agent.
func encodeState(e session.Event) (Frame, error) {
	switch p := e.Payload.(type) {
	case session.Created, session.StartRequested:
		return state(e, session.AgentLoading, "", ""), nil
	case session.TurnBegan, session.Resumed:
		return state(e, session.AgentRunning, "", ""), nil
	case session.ApprovalAsked:
		if p.Told {
			return Frame{}, nil
		}
		return state(e, session.AgentAwaitingYes, p.Reason, ""), nil
	case session.ApprovalGiven:
		to := session.AgentUserNo
		switch {
		case p.Approved && p.Late: // approved by default after the deadline
			to = session.AgentRunning
		case p.Approved:
			to = session.AgentUserYes
		}
		return state(e, to, p.Reason, ""), nil
	case session.StateChanged:
		return state(e, p.State, p.Reason, ""), nil
	case session.TurnEnded:
		if p.Reason == session.ReasonQuestion { // legacy clients know the state alone
			p.Reason = ""
		}
		return state(e, p.State, p.Reason, p.ErrorID), nil
	case session.Paused:
		return state(e, session.AgentPaused, "", ""), nil
	case session.Stopped:
		return state(e, session.AgentStopped, p.Reason, ""), nil
	case session.Failed:
		return state(e, session.AgentError, p.Reason, p.ID), nil
	default:
		return Frame{}, fmt.Errorf("event %d: no legacy form is decided for %T", e.Number, e.Payload)
	}
}

// The sources of an event.
const (
	fromAgent       = form.FromAgent
	fromUser        = form.FromUser
	fromEnvironment = form.FromEnvironment
)

// writer writes one frame.
type writer struct{ form.Writer }

func newWriter(size int) *writer { return &writer{*form.NewWriter(size)} }

type arguments = form.Arguments

// name writes an untrusted name.
func (w *writer) name(k string) {
	w.Comma()
	w.B = append(form.AppendString(w.B, k), ':')
}

// end closes the envelope.
func (w *writer) end() Frame {
	w.Shut('}')
	return Frame{Kind: Event, JSON: w.B}
}

// state writes a state change of the agent. Clients show reason to users, so it is a
// sentence if there is one, with the code next to it.
func state(e session.Event, to session.AgentState, reason, errorID string) Frame {
	if reason == "" {
		reason = errorID
	}
	w := newWriter(224 + len(reason) + len(errorID))
	w.Head(e, fromEnvironment, "")
	w.Observation("agent_state_changed", "", 0)
	w.Str("agent_state", string(to))
	w.Str("reason", reason)
	if errorID != "" {
		w.Str("error_id", errorID)
	}
	w.Shut('}')
	return w.end()
}

func userSaid(e session.Event, p session.UserSaid) Frame {
	size := 256 + 2*len(p.Text)
	for _, u := range p.Images {
		size += len(u) + 4
	}
	for _, u := range p.Files {
		size += len(u) + 4
	}
	w := newWriter(size)
	w.Head(e, fromUser, p.Text)
	w.said(p.Files, p.Images, false)
	return w.end()
}

func (w *writer) said(files, images []string, wait bool) {
	w.Action("message")
	w.Again("content")
	w.Strs("file_urls", files)
	w.Strs("image_urls", images)
	w.Flag("wait_for_response", wait)
	w.Num("security_risk", int64(session.RiskUnknown))
	w.Shut('}')
}

func briefed(e session.Event, p session.Briefed) Frame {
	w := newWriter(256 + 2*len(p.Prompt) + len(p.Tools))
	w.Head(e, fromAgent, p.Prompt)
	w.Action("system")
	w.Again("content")
	w.Array("tools", p.Tools, "null")
	// The version would be that of the reader, not of the writer of the log, so it is
	// null.
	w.Lit("openhands_version", "null")
	w.Str("agent_class", p.Agent)
	w.Shut('}')
	return w.end()
}

// modelAnswered shows a response that is text for the user. The text of a response with
// tool calls is sent as the thought of its first call.
func modelAnswered(e session.Event, p session.ModelAnswered) Frame {
	if len(p.ToolCalls) > 0 || p.Text == "" || p.Purpose != "" {
		return Frame{}
	}
	w := newWriter(704 + 2*len(p.Text) + len(p.Totals.Model))
	w.Head(e, fromAgent, p.Text)
	w.said(nil, nil, p.Final)
	w.metrics(p.Totals, p.Usage)
	return w.end()
}

// metrics writes the totals so far. The lists for single calls are always empty on
// events.
func (w *writer) metrics(t session.Totals, last session.Usage) {
	w.Open("llm_metrics", '{')
	w.Float("accumulated_cost", t.Cost.Dollars())
	w.Lit("max_budget_per_task", "null")
	w.Open("accumulated_token_usage", '{')
	w.Str("model", t.Model)
	w.Num("prompt_tokens", t.Input)
	w.Num("completion_tokens", t.Output)
	w.Num("cache_read_tokens", t.CacheRead)
	w.Num("cache_write_tokens", t.CacheWrite)
	w.Num("context_window", last.Window)
	w.Num("per_turn_token", last.Input+last.Output)
	w.Str("response_id", "")
	w.Shut('}')
	w.Lit("costs", "[]")
	w.Lit("response_latencies", "[]")
	w.Lit("token_usages", "[]")
	w.Shut('}')
}

func condensed(e session.Event, p session.Condensed) Frame {
	message := "Summary: " + p.Summary
	if p.Summary == "" {
		message = fmt.Sprintf("Condenser is dropping the events: %d to %d", p.From, p.To)
	}
	w := newWriter(384 + 2*len(p.Summary))
	w.Head(e, fromAgent, message)
	w.Action("condensation")
	w.Lit("forgotten_event_ids", "null")
	w.Num("forgotten_events_start_id", p.From)
	w.Num("forgotten_events_end_id", p.To)
	if p.Summary == "" { // a summary and its offset: both or neither
		w.Lit("summary", "null")
		w.Lit("summary_offset", "null")
	} else {
		w.Str("summary", p.Summary)
		w.Num("summary_offset", p.From-1) // the number of events before it; numbers start at 1
	}
	w.Shut('}')
	return w.end()
}
