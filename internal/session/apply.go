package session

import "slices"

// Apply is the fold. It is total: any event on any state gives a state and
// never panics, because a damaged log must be looked at, not crashed on.
// Whether an event may follow is Check's business.
func (s State) Apply(e Event) State {
	s.Last = e.Number
	s.UpdatedAt = e.At
	switch p := e.Payload.(type) {
	case Created:
		s.Created, s.Owner, s.CreatedAt = p, p.Owner, e.At
		s.Title = DefaultTitle(s.ID)
		s.Agent = AgentLoading
	case UserSaid:
		s.LastSaid = e.Number
		if p.Key != "" {
			s = s.remember(p.Key)
		}
	case Claimed:
		s.Claim, s.ClaimedBy = e.Number, p.By
	case WorkspaceReady:
		s.Ready, s.Step = true, ""
		if len(p.Handle) > 0 { // a workspace that is not needed yet has none, and keeps the one it had
			s.Handle, s.Up = p.Handle, true
		}
	case WorkspaceStep:
		s.Step = p.Step
	case EgressSet:
		s.Egress = p
	case Briefed:
		s.Briefing = true
	case TurnBegan:
		s.InTurn, s.Asks, s.Agent = true, 0, AgentRunning
		s.ErrorID, s.Reason = "", ""
	case ModelAsked, ModelAnswered, ModelFailed:
		s = s.applyModel(e)
	case ToolCalled, ToolReturned, ApprovalAsked, ApprovalGiven:
		s = s.applyTool(e)
	case StateChanged:
		s.Agent, s.Reason = p.State, p.Reason
	case TurnEnded:
		s = s.endTurn(p.UpTo)
		s.Agent, s.ErrorID, s.Reason = p.State, p.ErrorID, p.Reason
	case Paused:
		s.Paused, s.Announced, s.Agent = true, nil, AgentPaused
	case Resumed:
		s.Paused, s.Agent = false, AgentRunning
	case Stopped:
		// The person ended it: what was said so far is history, not a task.
		s = s.endTurn(e.Number).release()
		s.Stopped, s.Halt, s.Agent, s.ErrorID, s.Reason = true, e.Number, AgentStopped, "", p.Reason
	case Failed:
		// What was said stays to be answered after the next start.
		s = s.endTurn(s.Seen).release()
		s.Failed, s.Halt, s.Agent, s.ErrorID, s.Reason = true, e.Number, AgentError, p.ID, p.Reason
	case StartRequested:
		s.Stopped, s.Failed, s.Agent, s.ErrorID, s.Reason = false, false, AgentLoading, "", ""
	case Titled:
		s.Title, s.Named = p.Title, s.Named || p.ByUser
	case Deleted:
		s = s.endTurn(e.Number).release()
		s.Deleted, s.Agent = true, AgentStopped
	}
	return s
}

func (s State) applyModel(e Event) State {
	switch p := e.Payload.(type) {
	case ModelAsked:
		s.Ask = &OpenAsk{Call: p.Call, Number: e.Number, Reserved: p.Reserved, UpTo: p.UpTo}
		s.Reserved = p.Reserved
		s.Totals.Model = p.Model
		s.Shown = p.UpTo
		s.Asks++
	case ModelAnswered:
		s.Ask, s.Reserved = nil, 0
		s.Totals = s.Totals.plus(p.Usage, p.Cost)
		s.Announced = p.ToolCalls
		s.Answer, s.InAnswer, s.Thought = e.Number, len(p.ToolCalls), p.Text
	case ModelFailed:
		s.Ask, s.Reserved = nil, 0
		s.Totals.Cost += p.Cost
	}
	return s
}

func (s State) applyTool(e Event) State {
	switch p := e.Payload.(type) {
	case ToolCalled:
		if len(s.Announced) > 0 {
			s.Announced = s.Announced[1:]
		}
		if len(s.Open) == 0 {
			s.steps = &step{from: e.Number, prev: s.steps}
		}
		s.Open = append(slices.Clone(s.Open), OpenCall{ID: p.ID, Name: p.Name, Number: e.Number})
		s.Thought = ""
	case ToolReturned:
		s.Open = slices.DeleteFunc(slices.Clone(s.Open), func(c OpenCall) bool { return c.ID == p.ID })
		if len(s.Open) == 0 && s.steps != nil {
			s.steps = &step{from: s.steps.from, to: e.Number, prev: s.steps.prev}
		}
	case ApprovalAsked:
		s.Open = withCall(s.Open, p.ID, func(c *OpenCall) { c.Asked = true })
		s.Agent = AgentAwaitingYes
	case ApprovalGiven:
		s.Open = withCall(s.Open, p.ID, func(c *OpenCall) { c.Approved, c.Denied = p.Approved, !p.Approved })
		if s.Agent = AgentUserNo; p.Approved {
			s.Agent = AgentUserYes
		}
	}
	return s
}

// withCall changes one call in a copy of the list.
func withCall(open []OpenCall, id string, change func(*OpenCall)) []OpenCall {
	open = slices.Clone(open)
	for i := range open {
		if open[i].ID == id {
			change(&open[i])
		}
	}
	return open
}

func (s State) endTurn(upTo int64) State {
	s.InTurn, s.Paused, s.Asks, s.Announced, s.Thought = false, false, 0, nil, ""
	s.Seen = max(s.Seen, upTo)
	return s
}

// release takes the session from its owner: the next start claims it anew.
func (s State) release() State {
	s.Claim, s.ClaimedBy, s.Ready, s.Up, s.Step = 0, "", false, false, ""
	return s
}

func (s State) remember(key string) State {
	s.delivered = &delivery{key: key, prev: s.delivered}
	s.keys++
	if s.keys >= 2*rememberedKeys { // cut the tail now and then, so that it does not grow
		var kept []string
		for d := s.delivered; d != nil && len(kept) < rememberedKeys; d = d.prev {
			kept = append(kept, d.key)
		}
		s.delivered, s.keys = nil, len(kept)
		for _, k := range slices.Backward(kept) {
			s.delivered = &delivery{key: k, prev: s.delivered}
		}
	}
	return s
}

// DefaultTitle is the title until a better one is known.
func DefaultTitle(id ID) string {
	return "Conversation " + string(id[:min(5, len(id))])
}
