package session

import "fmt"

// Check says whether p may be the next event: the invariants, in one place. It runs before every append and again for
// every event when a log is loaded, so a bug or a damaged file is noticed where it happens and not much later.
func (s State) Check(p Payload) error {
	if _, ok := p.(Created); ok != !s.Exists() {
		return s.no(p, "a log begins with exactly one created event")
	}
	if s.Deleted {
		return s.no(p, "nothing follows deleted")
	}
	switch p := p.(type) {
	case Created, Briefed, Noted, Titled, EgressSet, RecallAsked, Recalled, CompactAsked:
		return nil
	case Checkpointed, Restored:
		return s.checkRestore(p)
	case Overridden:
		if p.Budget < 0 || !p.Limited && p.Budget != 0 {
			return s.no(p, "a limit is set and not negative, or there is none")
		}
		return nil
	case RequestOpened:
		return s.checkRequest(p)
	case CommandTyped, CommandEnded:
		return s.checkTyped(p)
	case Settled, Capped:
		return s.checkMoney(p)
	case UserSaid:
		if p.Key != "" && s.Delivered(p.Key) {
			return s.no(p, "a message is recorded once")
		}
		return nil
	case Withdrawn:
		return s.checkWithdrawn(p)
	case CheckedOut, SetUp, TrustSet, SetUpBegan, HookSet:
		return s.checkCheckout(p)
	case StartRequested:
		if !s.Stopped && !s.Failed {
			return s.no(p, "the conversation is not stopped")
		}
		return nil
	case Condensed:
		return s.checkCondensed(p)
	case Imported:
		return s.checkImported(p)
	case Stopped, Failed:
		if s.Stopped || s.Failed {
			return s.no(p, "the conversation is already stopped")
		}
		return s.checkClosed(p)
	case Deleted:
		return s.checkClosed(p)
	case ModelFailed: // settles what a stop or a takeover leaves behind, so it needs no owner
		if p.Cost < 0 {
			return s.no(p, "money is not negative")
		}
		return s.checkAnswers(p, p.Call)
	case ToolReturned:
		return s.checkReturn(p)
	}
	if s.Stopped || s.Failed {
		return s.no(p, "the conversation is stopped")
	}
	if _, ok := p.(Claimed); ok {
		return nil
	}
	if s.Claim == 0 {
		return s.no(p, "the session is not claimed")
	}
	return s.checkWork(p)
}

// checkWork holds for what only an owner does, or a person to an owned session.
func (s State) checkWork(p Payload) error {
	switch p := p.(type) {
	case TurnBegan:
		if s.InTurn {
			return s.no(p, "a turn is under way")
		}
	case ModelAsked:
		switch {
		case s.InTurn == (p.Purpose == ForTitle) && (s.Compact == nil || p.Purpose != ForSummary) || s.Paused:
			return s.no(p, "the model is asked within a turn")
		case len(s.Open) > 0 || len(s.Announced) > 0:
			return s.no(p, "every tool call has its result before the model is asked again")
		case s.Ask != nil:
			return s.no(p, "the last model call is not settled")
		case p.UpTo > s.Last || p.UpTo < s.Seen:
			return s.no(p, "up_to lies within the log")
		case p.Reserved < 0:
			return s.no(p, "money is not negative")
		}
	case ModelAnswered:
		if p.Cost < 0 {
			return s.no(p, "money is not negative")
		}
		return s.checkAnswers(p, p.Call)
	case ToolCalled:
		if _, open := s.call(p.ID); open {
			return s.no(p, "a tool call has one id")
		}
		if p.Origin != "" {
			return s.checkScripts(p)
		}
		switch {
		case !s.InTurn || s.Paused:
			return s.no(p, "tools run within a turn")
		case len(s.Announced) == 0 || s.Announced[0].ID != p.ID:
			return s.no(p, "tools run in the order the model called them")
		}
	case ApprovalAsked:
		if c, ok := s.call(p.ID); !ok || c.Asked {
			return s.no(p, "approval is asked once, for an open call")
		}
		if _, asked := s.Awaiting(); asked {
			return s.no(p, "the person is asked about one call at a time")
		}
	case ApprovalGiven:
		if c, ok := s.call(p.ID); !ok || !c.Asked || c.Approved || c.Denied {
			return s.no(p, "approval is given once, when asked")
		}
	case Granted:
		return s.checkMoney(p)
	case Replayed:
		if !s.Replaying() || p.Next < s.Replay {
			return s.no(p, "a replay goes forward until it is done")
		}
	case Nudged:
		if !s.InTurn {
			return s.no(p, "the model is spoken to within a turn")
		}
	case TurnEnded:
		if !s.InTurn || s.Paused {
			return s.no(p, "no turn is under way")
		}
		if p.UpTo < s.Seen || p.UpTo > s.Last {
			return s.no(p, "up_to lies within the log")
		}
		if p.State != AgentError && p.UpTo > s.Shown && s.LastSaid > s.Shown {
			return s.no(p, "no message is passed over that the model was not shown")
		}
		return s.checkSettled(p)
	case PauseRequested:
		if !s.InTurn || s.Paused || s.Pausing {
			return s.no(p, "the agent is not working, so it cannot be paused")
		}
	case Paused:
		if !s.InTurn || s.Paused {
			return s.no(p, "the agent is not working, so it cannot be paused")
		}
		if s.Ask != nil || len(s.Open) > 0 {
			return s.no(p, "open work is settled first")
		}
	case Resumed:
		if !s.Paused && !s.Pausing && (s.InTurn || s.Again || s.ErrorID == "") {
			return s.no(p, "there is nothing to resume")
		}
	}
	return nil
}

func (s State) checkAnswers(p Payload, call string) error {
	if s.Ask == nil || s.Ask.Call != call {
		return s.no(p, "an answer belongs to the one open model call")
	}
	if p, ok := p.(ModelAnswered); ok {
		if p.Purpose != s.Ask.Purpose {
			return s.no(p, "an answer has the purpose of its call")
		}
		seen := map[string]bool{}
		for _, c := range p.ToolCalls {
			if c.ID == "" || seen[c.ID] {
				return s.no(p, "the calls of an answer have ids of their own")
			}
			seen[c.ID] = true
		}
	}
	return nil
}

func (s State) checkMoney(p Payload) error {
	switch p := p.(type) {
	case Granted:
		if p.Amount < 0 || p.Child == "" {
			return s.no(p, "a grant has a child and is not negative")
		}
		if _, open := s.Granted(p.Child); open || s.Counted(p.Child) {
			return s.no(p, "a child is granted money once")
		}
	case Settled:
		if p.Cost < 0 {
			return s.no(p, "money is not negative")
		}
		if _, open := s.Granted(p.Child); !open && s.Counted(p.Child) {
			return s.no(p, "a child is settled once")
		}
	case Capped:
		if p.Limit < s.Totals.Cost {
			return s.no(p, "what is spent cannot be taken back")
		}
		if s.Limited && p.Limit > s.Limit {
			return s.no(p, "a limit is only lowered")
		}
	}
	return nil
}

func (s State) checkReturn(p ToolReturned) error {
	c, open := s.call(p.ID)
	if !open || c.Elsewhere {
		return s.no(p, "a tool call has exactly one result")
	}
	if p.Cause != c.Number {
		return s.no(p, "a result names the call that caused it")
	}
	if (c.Awaits() || c.Denied) && (p.Outcome == Succeeded || p.Outcome == FailedRun) {
		return s.no(p, "a call that was not approved is not made")
	}
	return nil
}

func (s State) checkSettled(p Payload) error {
	if s.Ask != nil {
		return s.no(p, "reserved money is settled or released first")
	}
	if len(s.Open) > 0 {
		return s.no(p, "every tool call has its result first")
	}
	if _, ok := p.(TurnEnded); ok && len(s.Announced) > 0 {
		return s.no(p, "every call of the answer is made first")
	}
	return nil
}

// checkClosed is checkSettled for what closes the session: the shell is closed too.
func (s State) checkClosed(p Payload) error {
	if len(s.Typed) > 0 {
		return s.no(p, "every command of a person has its result first")
	}
	return s.checkSettled(p)
}

func (s State) checkTyped(p Payload) error {
	switch p := p.(type) {
	case CommandTyped:
		if s.Stopped || s.Failed {
			return s.no(p, "the conversation is stopped")
		}
	case CommandEnded:
		if !s.typing(p.Cause) {
			return s.no(p, "a command of a person has exactly one result")
		}
	}
	return nil
}

func (s State) checkCondensed(p Condensed) error {
	switch {
	case p.From < 1 || p.To < p.From || p.To > s.Last:
		return s.no(p, "the range lies within the log")
	case s.splits(p.From, p.To):
		return s.no(p, "a tool call is not separated from its result")
	}
	return nil
}

func (s State) no(p Payload, rule string) error {
	return fmt.Errorf("%w: %s after event %d: %s", ErrRefused, p.Kind(), s.Last, rule)
}
