package session_test

import (
	"fmt"

	"deckhand/internal/session"
)

// auditor reads a raw log and says which promise it breaks. It is written from
// the list of promises and shares nothing with State: a mistake in the fold
// must not hide itself.
type auditor struct {
	limited bool
	budget  session.Money

	last      int64
	deleted   bool
	halted    bool // stopped or failed
	claim     int64
	ready     bool
	inTurn    bool
	paused    bool
	ask       *session.ModelAsked
	spent     session.Money
	calls     []pair
	announced int
	said      []message
	keys      map[string]bool
}

// pair is a tool call and its result; end is 0 while there is none.
type pair struct {
	id         string
	begin, end int64
	asked      bool
	decided    bool
}

// message is what a person said and what became of it.
type message struct {
	number       int64
	shown, dealt bool
}

// audit replays the log. authors gives the claim of the loop that wrote an
// event, for events that a loop wrote.
func audit(events []session.Event, authors map[int64]int64, limited bool, budget session.Money) (*auditor, error) {
	a := &auditor{limited: limited, budget: budget, keys: map[string]bool{}}
	for _, e := range events {
		if err := a.next(e, authors[e.Number]); err != nil {
			return a, fmt.Errorf("event %d (%s): %w", e.Number, e.Payload.Kind(), err)
		}
	}
	return a, nil
}

func (a *auditor) next(e session.Event, author int64) error {
	if e.Number != a.last+1 {
		return fmt.Errorf("follows number %d", a.last)
	}
	if (e.Number == 1) != (e.Payload.Kind() == session.KindCreated) {
		return fmt.Errorf("created is the first event and only the first")
	}
	if a.deleted {
		return fmt.Errorf("follows deleted")
	}
	a.last = e.Number
	if author != 0 && e.Payload.Kind() != session.KindClaimed && author != a.claim {
		return fmt.Errorf("written by the owner of claim %d while claim %d is in force", author, a.claim)
	}
	for _, step := range []func(session.Event) error{a.life, a.people, a.money, a.tools} {
		if err := step(e); err != nil {
			return err
		}
	}
	if a.limited && a.spent+a.reserved() > a.budget {
		return fmt.Errorf("%d spent and %d reserved of a budget of %d", a.spent, a.reserved(), a.budget)
	}
	return nil
}

// life follows starts, stops, owners and turns.
func (a *auditor) life(e session.Event) error {
	switch p := e.Payload.(type) {
	case session.Claimed:
		if a.halted {
			return fmt.Errorf("a stopped session is claimed")
		}
		a.claim = e.Number
	case session.WorkspaceReady:
		a.ready = true
	case session.TurnBegan:
		if a.inTurn || a.claim == 0 {
			return fmt.Errorf("a turn within a turn, or of nobody")
		}
		a.inTurn = true
	case session.TurnEnded:
		if !a.inTurn || p.UpTo >= e.Number {
			return fmt.Errorf("ends no turn, or the future")
		}
		a.inTurn, a.paused = false, false
	case session.Paused:
		if !a.inTurn || a.paused {
			return fmt.Errorf("pauses nothing")
		}
		a.paused, a.announced = true, 0
	case session.Resumed:
		if !a.paused {
			return fmt.Errorf("resumes nothing")
		}
		a.paused = false
	case session.Stopped, session.Failed:
		if a.halted {
			return fmt.Errorf("stopped twice")
		}
		a.halted = true
		a.release()
	case session.StartRequested:
		if !a.halted {
			return fmt.Errorf("started twice")
		}
		a.halted = false
	case session.Deleted:
		a.deleted = true
		a.release()
	}
	return nil
}

func (a *auditor) release() {
	a.claim, a.ready, a.inTurn, a.paused, a.announced = 0, false, false, false, 0
}

// people follows what was said.
func (a *auditor) people(e session.Event) error {
	deal := func(upTo int64, mustBeShown bool) error {
		for i := range a.said {
			m := &a.said[i]
			if m.dealt || m.number > upTo {
				continue
			}
			if mustBeShown && !m.shown {
				return fmt.Errorf("message %d is passed over and no model saw it", m.number)
			}
			m.dealt = true
		}
		return nil
	}
	switch p := e.Payload.(type) {
	case session.UserSaid:
		if p.Key != "" && a.keys[p.Key] {
			return fmt.Errorf("key %q is recorded twice", p.Key)
		}
		a.keys[p.Key] = true
		a.said = append(a.said, message{number: e.Number})
	case session.ModelAsked:
		for i := range a.said {
			a.said[i].shown = a.said[i].shown || a.said[i].number <= p.UpTo
		}
	case session.TurnEnded:
		return deal(p.UpTo, p.State != session.AgentError)
	case session.Stopped, session.Deleted:
		return deal(e.Number, false)
	}
	return nil
}

func (a *auditor) pending() bool {
	for _, m := range a.said {
		if !m.dealt {
			return true
		}
	}
	return false
}

func (a *auditor) reserved() session.Money {
	if a.ask == nil {
		return 0
	}
	return a.ask.Reserved
}

// money follows model calls.
func (a *auditor) money(e session.Event) error {
	settle := func(call string, cost, total session.Money) error {
		if a.ask == nil || a.ask.Call != call {
			return fmt.Errorf("settles %q, which is not open", call)
		}
		a.ask = nil
		if a.spent += cost; cost < 0 || total != a.spent {
			return fmt.Errorf("costs %d and says the sum is %d, it is %d", cost, total, a.spent)
		}
		return nil
	}
	switch p := e.Payload.(type) {
	case session.ModelAsked:
		switch {
		case a.ask != nil:
			return fmt.Errorf("the call %q is not settled", a.ask.Call)
		case !a.inTurn || a.paused:
			return fmt.Errorf("asked outside of a turn or in a pause")
		case p.UpTo >= e.Number || p.Reserved < 0:
			return fmt.Errorf("strange question %+v", p)
		}
		a.ask = &p
	case session.ModelAnswered:
		return settle(p.Call, p.Cost, p.Totals.Cost)
	case session.ModelFailed:
		return settle(p.Call, p.Cost, p.Totals.Cost)
	case session.Stopped, session.Failed, session.Deleted, session.Paused, session.TurnEnded:
		if a.ask != nil {
			return fmt.Errorf("%d stay reserved for %q", a.ask.Reserved, a.ask.Call)
		}
	}
	return nil
}

// tools follows calls and results, and what condensations do to them.
func (a *auditor) tools(e session.Event) error {
	open := -1
	for i := range a.calls {
		if a.calls[i].end == 0 {
			open = i
		}
	}
	switch p := e.Payload.(type) {
	case session.ModelAnswered:
		a.announced = len(p.ToolCalls)
	case session.ToolCalled:
		if a.announced == 0 || !a.inTurn || a.paused {
			return fmt.Errorf("call %q was not announced, or comes outside of a turn", p.ID)
		}
		a.announced--
		a.calls = append(a.calls, pair{id: p.ID, begin: e.Number})
	case session.ToolReturned:
		for i := range a.calls {
			if c := &a.calls[i]; c.id == p.ID && c.begin == p.Cause {
				if c.end != 0 {
					return fmt.Errorf("call %d has a second result", c.begin)
				}
				c.end = e.Number
				return nil
			}
		}
		return fmt.Errorf("result of a call that was not made: %q caused by %d", p.ID, p.Cause)
	case session.ApprovalAsked, session.ApprovalGiven:
		return a.approval(e)
	case session.ModelAsked, session.TurnEnded, session.Stopped, session.Failed, session.Deleted, session.Paused:
		if open >= 0 {
			return fmt.Errorf("call %d has no result yet", a.calls[open].begin)
		}
	case session.Condensed:
		if p.From < 1 || p.To < p.From || p.To >= e.Number {
			return fmt.Errorf("condenses %d..%d", p.From, p.To)
		}
		for _, c := range a.calls {
			begins := c.begin >= p.From && c.begin <= p.To
			ends := c.end >= p.From && c.end <= p.To
			if begins != ends {
				return fmt.Errorf("%d..%d separates call %d from its result %d", p.From, p.To, c.begin, c.end)
			}
		}
	}
	return nil
}

func (a *auditor) approval(e session.Event) error {
	for i := range a.calls {
		c := &a.calls[i]
		switch p := e.Payload.(type) {
		case session.ApprovalAsked:
			if c.end == 0 && c.id == p.ID && !c.asked {
				c.asked = true
				return nil
			}
		case session.ApprovalGiven:
			if c.end == 0 && c.id == p.ID && c.asked && !c.decided {
				c.decided = true
				return nil
			}
		}
	}
	return fmt.Errorf("approval out of place")
}

// status and wants are what the session must look like from outside.
func (a *auditor) status() session.Status {
	switch {
	case a.halted || a.deleted:
		return session.Halted
	case a.claim != 0 && a.ready:
		return session.Running
	}
	return session.Starting
}

func (a *auditor) wants() bool {
	waits := a.paused
	for _, c := range a.calls {
		waits = waits || c.end == 0 && c.asked && !c.decided
	}
	switch {
	case a.last == 0 || a.halted || a.deleted:
		return false
	case a.claim == 0 || !a.ready:
		return true
	}
	return !waits && (a.inTurn || a.pending())
}
