package session

import (
	"bytes"
	"slices"
)

// Apply is the fold. It is total: any event on any state gives a state and never panics, because a damaged log must be looked at, not crashed on. Whether an event may follow is Check's business.
func (s State) Apply(e Event) State {
	s.Last = e.Number
	s.UpdatedAt = e.At
	switch p := e.Payload.(type) {
	case Created:
		s.Created, s.Owner, s.CreatedAt = p, p.Owner, e.At
		if p.Forked != nil {
			s.CreatedAt = p.Forked.At
		}
		s.Title = DefaultTitle(s.ID)
		s.Agent = AgentLoading
		s.Limit, s.Limited = p.Grant, p.Granted
		s.Totals = p.Before
	case UserSaid:
		s.Automated = p.Automated && (s.Automated || !s.Pending() && !s.InTurn)
		s.LastSaid = e.Number
		if !p.Recorded() { // the replay itself answers what it says
			s.said = append(slices.Clip(s.said), e.Number)
		} else {
			s.heard = e.Number
		}
		if s.Replaying() && s.Spoke == 0 && !p.Recorded() {
			s.Spoke = e.Number
		}
		if p.Key != "" {
			s = s.remember(p.Key)
		}
	case Withdrawn:
		s = s.without(p.Messages)
	case Claimed:
		s.Claim, s.ClaimedBy, s.RanBefore = e.Number, p.By, s.Ran
	case WorkspaceReady:
		s.Ready, s.Step = true, ""
		if len(p.Handle) > 0 { // a workspace that is not needed yet has none, and keeps the one it had
			if len(s.Handle) > 0 && !bytes.Equal(s.Handle, p.Handle) {
				s.HandleAt = e.Number
			}
			s.Handle, s.Up = p.Handle, true
		}
	case WorkspaceStep:
		s.Step = p.Step
	case CheckedOut:
		s.Checkout, s.SetUp, s.SettingUp, s.Hook = &p, nil, nil, nil
	case SetUp:
		s.SetUp = &p
	case TrustSet:
		s.Trust = p
	case SetUpBegan:
		s.SettingUp = &p
	case HookSet:
		s.Hook = &p
	case EgressSet:
		s.Egress = p
	case Overridden:
		s.Overrides = p
	case Checkpointed:
		s.Checkpoint = p.Checkpoint
	case Restored:
		s = s.applyRestored(p)
	case Briefed:
		s.Briefing = true
	case Replayed:
		s.Replay, s.ReplayDone = p.Next, p.Done
		if p.Done && s.Spoke > 0 { // it was not the recorded agent's to answer
			s.Seen, s.Shown, s.Spoke = min(s.Seen, s.Spoke-1), min(s.Shown, s.Spoke-1), 0
		}
	case Granted, Settled, Capped:
		s = s.applyMoney(p)
	case TurnBegan:
		s.InTurn, s.Again, s.Asks, s.Over, s.Agent = true, false, 0, "", AgentRunning
		s.ErrorID, s.Reason, s.Began, s.RanBefore, s.Worked = "", "", e.Number, s.Ran, false
	case ModelAsked, ModelAnswered, ModelFailed:
		s = s.applyModel(e)
	case ToolCalled, ToolReturned, ApprovalAsked, ApprovalGiven:
		s = s.applyTool(e)
	case CommandTyped, CommandEnded:
		s = s.applyTyped(e)
	case CompactAsked:
		s.Compact = &p
	case Condensed:
		s.Compact = nil
	case Noted:
		if p.ID == NoteCompactFailed {
			s.Compact = nil
		}
	case StateChanged:
		s.Agent, s.Reason = p.State, p.Reason
	case TurnEnded:
		s = s.endTurn(p.UpTo)
		s.Turns++
		s.Agent, s.ErrorID, s.Reason = p.State, p.ErrorID, p.Reason
	case PauseRequested:
		s.Pausing = true
	case Paused:
		s.Paused, s.Pausing, s.Agent = true, false, AgentPaused
		if !p.AfterStep {
			s.Announced = nil
		}
	case Resumed:
		s.Again = !s.Paused && !s.Pausing
		s.Paused, s.Pausing, s.Agent, s.RanBefore = false, false, AgentRunning, s.Ran
	case Stopped:
		// The person ended it: what was said so far is history, not a task.
		s = s.endTurn(e.Number).release()
		s.Spoke = 0
		s.Stopped, s.Halt, s.Agent, s.ErrorID, s.Reason = true, e.Number, AgentStopped, "", p.Reason
	case Failed:
		// What was said stays to be answered after the next start.
		s = s.endTurn(s.Seen).release()
		s.Failed, s.Halt, s.Agent, s.ErrorID, s.Reason = true, e.Number, AgentError, p.ID, p.Reason
	case StartRequested:
		s.Stopped, s.Failed, s.Agent, s.ErrorID, s.Reason = false, false, AgentLoading, "", ""
	case Titled:
		s.Title, s.Named = p.Title, s.Named || p.ByUser
	case RequestOpened:
		s = s.withRequest(p)
	case Imported:
		s = s.applyImported(e.Number, p)
	case Deleted:
		s = s.endTurn(e.Number).release()
		s.Deleted, s.Agent = true, AgentStopped
	}
	if f := s.Created.Forked; f != nil && e.Number <= f.Number {
		s = s.asCopy(e.Number == f.Number)
	}
	return s
}

func (s State) applyModel(e Event) State {
	switch p := e.Payload.(type) {
	case ModelAsked:
		s.Ask = &OpenAsk{Call: p.Call, Number: e.Number, Reserved: p.Reserved, UpTo: p.UpTo, Purpose: p.Purpose}
		s.Reserved = p.Reserved
		s.Totals.Model = p.Model
		if p.Purpose == "" {
			s.Shown = p.UpTo
			s.Asks++
		}
	case ModelAnswered:
		s.Ask, s.Reserved, s.Entitled = nil, 0, s.Entitled || p.Purpose == ForTitle
		s.Totals = s.Totals.plus(p.Usage, p.Cost)
		if p.Purpose == "" {
			s.Announced, s.Over = p.ToolCalls, ""
			s.Answer, s.InAnswer, s.Thought, s.Used = e.Number, len(p.ToolCalls), p.Text, p.Usage
		}
	case ModelFailed:
		if p.Retried && s.Ask != nil && s.Ask.Purpose == "" {
			s.Asks--
		}
		s.Ask, s.Reserved = nil, 0
		s.Totals.Cost += p.Cost
	}
	return s
}

func (s State) applyMoney(p Payload) State {
	switch p := p.(type) {
	case Granted:
		s.Grants = append(slices.Clone(s.Grants), p)
	case Settled:
		s.Grants = slices.DeleteFunc(slices.Clone(s.Grants), func(g Granted) bool { return g.Child == p.Child })
		s.Totals.Cost += p.Cost
		s.paid = append(slices.Clone(s.paid), p.Child)
	case Capped:
		s.Limit, s.Limited = p.Limit, true
	}
	return s
}

func (s State) applyTool(e Event) State {
	switch p := e.Payload.(type) {
	case ToolCalled:
		if len(s.Open) == 0 {
			s.steps = &step{from: e.Number, prev: s.steps}
		}
		s.Open = append(slices.Clone(s.Open), OpenCall{ID: p.ID, Name: p.Name, Number: e.Number, Since: e.Number, Given: p.Args, Origin: p.Origin, Before: s.Agent})
		if p.Origin != "" { // it is not of the model's answer
			return s
		}
		if len(s.Announced) > 0 {
			s.Announced = s.Announced[1:]
		}
		s.Thought = ""
	case ToolReturned:
		if c, ok := s.call(p.ID); ok && c.Origin != "" {
			s.Agent = c.Resumes(s)
		}
		s.Ran, s.Worked, s.Open = e.At, true, slices.DeleteFunc(slices.Clone(s.Open), func(c OpenCall) bool { return c.ID == p.ID })
		if len(s.Open) == 0 && s.steps != nil {
			s.steps = &step{from: s.steps.from, to: e.Number, prev: s.steps.prev}
		}
		if len(s.Open) == 0 {
			s.paid = nil
		}
		if p.Ends {
			s.Over = AgentFinished
		}
		if s.Agent == AgentUserYes || s.Agent == AgentUserNo {
			s.Agent = AgentRunning
		}
	case ApprovalAsked:
		s.Open = withCall(s.Open, p.ID, func(c *OpenCall) { c.Asked, c.Deadline, c.Default = true, p.Deadline, p.Default })
		s.Agent, s.Reason = AgentAwaitingYes, "" // the reason belongs to the call
	case ApprovalGiven:
		s = s.decided(e.Number, p)
	}
	return s
}

func (s State) decided(number int64, p ApprovalGiven) State {
	s.Open = withCall(s.Open, p.ID, func(c *OpenCall) {
		c.Approved, c.Denied, c.Why, c.Args, c.Since = p.Approved, !p.Approved, p.Reason, p.Args, number
	})
	if p.Approved && p.Always != "" && !slices.Contains(s.Allowed, p.Always) {
		s.Allowed = append(slices.Clone(s.Allowed), p.Always)
	}
	call, _ := s.call(p.ID)
	switch s.Agent, s.RanBefore = AgentUserNo, s.Ran; {
	case p.Approved && p.Late: // approved by the default, not by a person
		s.Agent = AgentRunning
	case p.Approved:
		s.Agent = AgentUserYes
	case p.Reason == "" && call.Origin == "": // a plain no means: wait for me
		s.Over = AgentAwaitingUser
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
	s.InTurn, s.Again, s.Paused, s.Pausing, s.Asks, s.Announced, s.Thought, s.Over = false, false, false, false, 0, nil, "", ""
	s.Seen = max(s.Seen, upTo)
	if !s.Replaying() {
		s.said = slices.DeleteFunc(slices.Clone(s.said), func(n int64) bool { return n <= s.Seen })
	}
	return s
}

// release takes the session from its owner: the next start claims it anew.
func (s State) release() State {
	s.Claim, s.ClaimedBy, s.Ready, s.Up, s.Step, s.Compact = 0, "", false, false, "", nil
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
