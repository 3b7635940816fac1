package session_test

import (
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/session"
)

// auditor reads a raw log and says which promise it breaks. It is written from
// the list of promises and shares nothing with State: a mistake in the fold
// must not hide itself.
type auditor struct {
	// limit is what may be spent, nil if nothing limits it. It is the rules that
	// keep to it and not Check, so it is only looked at where rules wrote the log.
	limit *session.Money
	ruled bool

	last      int64
	deleted   bool
	halted    bool // stopped or failed
	claim     int64
	ready     bool
	inTurn    bool
	paused    bool
	ask       *session.ModelAsked
	spent     session.Money
	asks      int // of this turn, without those that are made again
	calls     []pair
	announced int
	said      []message
	typed     []int64 // commands of people without a result
	compact   bool    // a summary was asked for that is not there yet
	keys      map[string]bool
	// broken is true after a turn that ended in an error, again when it is to be
	// taken up once more; replay while a trajectory is being run.
	broken, again bool
	kept          bool // calls were announced before the last pause and not made
	pausing       bool // a pause after the step in progress was asked for
	replay        bool
	next          int // step of the trajectory
	then          *session.UserSaid
	grants        map[session.ID]session.Money
	counted       map[session.ID]bool // children that are settled, as long as a call is open
	allowed       []string
	// own is true for a session with a repository of its own; of its checkout, script
	// and hook are still to be dealt with.
	own, script, hook bool
	// met are the situations that the log went through, for the test of the test.
	met map[string]bool
}

// situations are what some random world must get into, or it proves little.
var situations = []string{
	"spoken to in a replay", "stopped in a replay", "an error in a replay", "paused in a replay", "answered after a replay",
	"taken up after an error", "a call made again", "a summary", "a child settled", "a limit lowered", "stopped with a grant open",
	"a call edited", "a call always allowed", "an answer is over", "a call skipped", "a deadline",
	"paused after a step", "a call made after a pause", "a summary between turns",
}

// meet notes a situation.
func (a *auditor) meet(situation string, yes bool) {
	if yes {
		a.met[situation] = true
	}
}

// look notes the situations that an event makes, before it is counted.
func (a *auditor) look(e session.Event) {
	switch p := e.Payload.(type) {
	case session.UserSaid:
		a.meet("spoken to in a replay", a.replay && !strings.HasPrefix(p.Key, "replay:"))
	case session.Stopped:
		a.meet("stopped in a replay", a.replay && a.next > 0)
		a.meet("stopped with a grant open", len(a.grants) > 0)
	case session.TurnEnded:
		a.meet("an error in a replay", a.replay && p.ErrorID != "")
		a.meet("an answer is over", p.State == session.AgentFinished)
	case session.Paused:
		a.meet("paused in a replay", a.replay)
		a.meet("paused after a step", a.pausing && p.AfterStep)
	case session.Replayed:
		a.meet("answered after a replay", p.Done && slices.ContainsFunc(a.said, func(m message) bool { return m.live && m.dealt }))
	case session.Resumed:
		a.meet("taken up after an error", !a.paused && !a.pausing)
	case session.ModelAsked:
		a.meet("a summary", p.Purpose == session.ForSummary)
		a.meet("a summary between turns", p.Purpose == session.ForSummary && !a.inTurn)
	case session.ModelFailed:
		a.meet("a call made again", p.Retried)
	case session.Settled:
		a.meet("a child settled", true)
	case session.Capped:
		a.meet("a limit lowered", a.limit != nil && p.Limit < *a.limit)
	case session.ApprovalAsked:
		a.meet("a deadline", !p.Deadline.IsZero())
	case session.ApprovalGiven:
		a.meet("a call edited", p.Args != nil)
		a.meet("a call always allowed", p.Always != "")
	case session.ToolReturned:
		a.meet("a call skipped", p.Output == "it is over")
	}
}

// pair is a tool call and its result; end is 0 while there is none.
type pair struct {
	id         string
	begin, end int64
	asked      bool
	decided    bool
	approved   bool
	deadline   bool
}

func (c pair) awaits() bool { return c.end == 0 && c.asked && !c.decided }

// message is what a person said and what became of it.
type message struct {
	number       int64
	shown, dealt bool
	live         bool // said by a person while a trajectory was run
}

// audit replays a log that rules wrote. authors gives the claim of the loop that
// wrote an event, for events that a loop wrote; budget is the person's limit.
func audit(events []session.Event, authors map[int64]int64, budget *session.Money) (*auditor, error) {
	return replay(&auditor{limit: budget, ruled: true}, events, authors)
}

// auditRaw replays a log of which only Check is known to have seen it.
func auditRaw(events []session.Event) (*auditor, error) { return replay(&auditor{}, events, nil) }

func replay(a *auditor, events []session.Event, authors map[int64]int64) (*auditor, error) {
	a.keys, a.grants, a.counted, a.met = map[string]bool{}, map[session.ID]session.Money{}, map[session.ID]bool{}, map[string]bool{}
	for _, e := range events {
		a.look(e)
		if err := a.take(e, authors[e.Number]); err != nil {
			return a, fmt.Errorf("event %d (%s): %w", e.Number, e.Payload.Kind(), err)
		}
	}
	return a, nil
}

func (a *auditor) take(e session.Event, author int64) error {
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
	for _, step := range []func(session.Event) error{a.life, a.trajectory, a.people, a.model, a.money, a.tools, a.repository, a.commands} {
		if err := step(e); err != nil {
			return err
		}
	}
	if a.ruled && a.limit != nil && a.spent+a.reserved() > *a.limit {
		return fmt.Errorf("%d spent and %d reserved of a limit of %d", a.spent, a.reserved(), *a.limit)
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
			return fmt.Errorf("a turn within a turn, or without a holder")
		}
		a.inTurn, a.broken, a.again = true, false, false
	case session.TurnEnded:
		if !a.inTurn || a.paused || p.UpTo >= e.Number {
			return fmt.Errorf("ends no turn, or one that is paused, or the future")
		}
		a.inTurn, a.pausing, a.broken = false, false, p.ErrorID != ""
	case session.PauseRequested:
		if !a.inTurn || a.paused || a.pausing {
			return fmt.Errorf("pauses nothing")
		}
		a.pausing = true
	case session.Paused:
		if !a.inTurn || a.paused {
			return fmt.Errorf("pauses nothing")
		}
		if a.paused, a.pausing = true, false; !p.AfterStep {
			a.announced = 0
		}
		a.kept = a.announced > 0
	case session.Resumed:
		if !a.paused && !a.pausing && (!a.broken || a.inTurn || a.again) {
			return fmt.Errorf("resumes nothing")
		}
		a.again = !a.paused && !a.pausing
		a.paused, a.pausing = false, false
	case session.Nudged:
		if !a.inTurn {
			return fmt.Errorf("speaks without a session")
		}
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
	case session.CompactAsked:
		a.compact = true
	case session.Condensed:
		a.compact = false
	case session.Noted:
		a.compact = a.compact && p.ID != session.NoteCompactFailed
	}
	return nil
}

// commands follows what people typed.
func (a *auditor) commands(e session.Event) error {
	switch p := e.Payload.(type) {
	case session.CommandTyped:
		a.typed = append(a.typed, e.Number)
	case session.CommandEnded:
		i := slices.Index(a.typed, p.Cause)
		if i < 0 {
			return fmt.Errorf("ends no command: %d", p.Cause)
		}
		a.typed = slices.Delete(a.typed, i, i+1)
	case session.Stopped, session.Failed, session.Deleted:
		if len(a.typed) > 0 {
			return fmt.Errorf("command %d has no result yet", a.typed[0])
		}
	}
	return nil
}

func (a *auditor) release() {
	a.claim, a.ready, a.inTurn, a.paused, a.pausing, a.announced, a.broken, a.again, a.compact = 0, false, false, false, false, 0, false, false, false
}

// repository follows what becomes of the checkout's scripts.
func (a *auditor) repository(e session.Event) error {
	switch p := e.Payload.(type) {
	case session.Created:
		a.own = p.Repository != "" && p.Parent == ""
	case session.CheckedOut:
		a.script, a.hook = p.Script != "", p.Hook != ""
	case session.SetUp:
		a.script = false
	case session.HookSet:
		a.hook = false
	}
	return nil
}

// trajectory follows a replay.
func (a *auditor) trajectory(e session.Event) error {
	switch p := e.Payload.(type) {
	case session.Created:
		if a.replay = p.Replay != ""; a.replay {
			a.then = p.Then
		}
	case session.Replayed:
		if !a.replay || a.halted || a.claim == 0 || p.Next < a.next {
			return fmt.Errorf("replays nothing, or goes back from step %d", a.next)
		}
		a.replay, a.next = !p.Done, p.Next
	}
	return nil
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
		a.said = append(a.said, message{number: e.Number, live: a.replay && !strings.HasPrefix(p.Key, "replay:")})
	case session.Withdrawn:
		for i := range a.said {
			m := &a.said[i]
			if !slices.Contains(p.Messages, m.number) {
				continue
			}
			if m.shown || m.dealt {
				return fmt.Errorf("message %d is withdrawn after a model saw it, or twice", m.number)
			}
			m.dealt = true
		}
	case session.Replayed:
		// What users said since is answered now, and with it what followed:
		// no model saw it, whatever the recorded agent was shown.
		live := false
		for i := range a.said {
			m := &a.said[i]
			if live = live || m.live; p.Done && live {
				m.live, m.shown, m.dealt = false, false, false
			}
		}
	case session.ModelAsked:
		for i := range a.said {
			a.said[i].shown = a.said[i].shown || p.Purpose == "" && a.said[i].number <= p.UpTo
		}
	case session.TurnEnded:
		return deal(p.UpTo, p.State != session.AgentError)
	case session.Stopped, session.Deleted: // all that was said is history, in a replay too
		for i := range a.said {
			a.said[i].live = false
		}
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
	var sum session.Money
	for _, g := range a.grants {
		sum += g
	}
	if a.ask != nil {
		sum += a.ask.Reserved
	}
	return sum
}

// model follows model calls and what they cost.
func (a *auditor) model(e session.Event) error {
	settle := func(call string, cost, total session.Money) error {
		if a.ask == nil || a.ask.Call != call {
			return fmt.Errorf("settles %q, which is not open", call)
		}
		a.ask = nil
		return a.pay(cost, total)
	}
	switch p := e.Payload.(type) {
	case session.TurnBegan:
		a.asks = 0
	case session.ModelAsked:
		switch {
		case a.ask != nil:
			return fmt.Errorf("the call %q is not settled", a.ask.Call)
		case !a.inTurn && !(a.compact && p.Purpose == session.ForSummary) || a.paused || a.pausing:
			return fmt.Errorf("asked outside of a turn or in a pause")
		case p.UpTo >= e.Number || p.Reserved < 0:
			return fmt.Errorf("strange question %+v", p)
		}
		if a.ask = &p; p.Purpose == "" {
			a.asks++
		}
	case session.ModelAnswered:
		if a.ask != nil && a.ask.Purpose != p.Purpose {
			return fmt.Errorf("asked for %q, answered for %q", a.ask.Purpose, p.Purpose)
		}
		return settle(p.Call, p.Cost, p.Totals.Cost)
	case session.ModelFailed:
		if a.ask != nil && a.ask.Purpose == "" && p.Retried {
			a.asks--
		}
		return settle(p.Call, p.Cost, p.Totals.Cost)
	case session.Stopped, session.Failed, session.Deleted, session.Paused, session.TurnEnded:
		if a.ask != nil {
			return fmt.Errorf("%d stay reserved for %q", a.ask.Reserved, a.ask.Call)
		}
	}
	return nil
}

// pay adds a cost, and insists that the event knows the sum.
func (a *auditor) pay(cost, total session.Money) error {
	if a.spent += cost; cost < 0 || total != a.spent {
		return fmt.Errorf("costs %d and says the sum is %d, it is %d", cost, total, a.spent)
	}
	return nil
}

// money follows limits and what is set aside for children.
func (a *auditor) money(e session.Event) error {
	lower := func(to session.Money) {
		if a.limit == nil || to < *a.limit {
			a.limit = &to
		}
	}
	switch p := e.Payload.(type) {
	case session.Created:
		if p.Granted {
			lower(p.Grant)
		}
	case session.Granted:
		if _, twice := a.grants[p.Child]; twice || a.counted[p.Child] || p.Amount < 0 || a.claim == 0 {
			return fmt.Errorf("strange grant %+v", p)
		}
		a.grants[p.Child] = p.Amount
	case session.Settled:
		grant, open := a.grants[p.Child]
		if !open && a.counted[p.Child] {
			return fmt.Errorf("%s is settled twice", p.Child)
		}
		if a.ruled && open && p.Cost > grant {
			return fmt.Errorf("%d are settled of a grant of %d", p.Cost, grant)
		}
		delete(a.grants, p.Child)
		a.counted[p.Child] = true
		return a.pay(p.Cost, p.Totals.Cost)
	case session.Capped:
		if p.Limit < a.spent {
			return fmt.Errorf("capped at %d, %d are spent", p.Limit, a.spent)
		}
		lower(p.Limit)
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
		if p.Purpose == "" {
			a.announced = len(p.ToolCalls)
		}
	case session.TurnBegan:
		a.announced = 0
	case session.ToolCalled:
		if p.Origin == "" {
			if a.announced == 0 || !a.inTurn || a.paused {
				return fmt.Errorf("call %q was not announced, or comes outside of a turn", p.ID)
			}
			a.announced--
		}
		a.meet("a call made after a pause", a.kept)
		a.kept = false
		a.calls = append(a.calls, pair{id: p.ID, begin: e.Number})
	case session.ToolReturned:
		return a.result(e.Number, p)
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

func (a *auditor) result(number int64, p session.ToolReturned) error {
	open := 0
	var call *pair
	for i := range a.calls {
		c := &a.calls[i]
		if c.id == p.ID && c.begin == p.Cause {
			call = c
		}
		if c.end == 0 {
			open++
		}
	}
	switch {
	case call == nil:
		return fmt.Errorf("result of a call that was not made: %q caused by %d", p.ID, p.Cause)
	case call.end != 0:
		return fmt.Errorf("call %d has a second result", call.begin)
	case call.asked && !call.approved && (p.Outcome == session.Succeeded || p.Outcome == session.FailedRun):
		return fmt.Errorf("call %d was made without approval", call.begin)
	}
	if call.end = number; open == 1 {
		clear(a.counted)
	}
	return nil
}

func (a *auditor) approval(e session.Event) error {
	for i := range a.calls {
		if _, ask := e.Payload.(session.ApprovalAsked); ask && a.calls[i].awaits() {
			return fmt.Errorf("the person is asked about two calls")
		}
	}
	for i := range a.calls {
		c := &a.calls[i]
		switch p := e.Payload.(type) {
		case session.ApprovalAsked:
			if c.end == 0 && c.id == p.ID && !c.asked {
				c.asked, c.deadline = true, !p.Deadline.IsZero()
				return nil
			}
		case session.ApprovalGiven:
			if c.end == 0 && c.id == p.ID && c.asked && !c.decided {
				c.decided, c.approved = true, p.Approved
				if p.Approved && p.Always != "" && !slices.Contains(a.allowed, p.Always) {
					a.allowed = append(a.allowed, p.Always)
				}
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
	switch {
	case a.last == 0 || a.halted || a.deleted:
		return false
	case a.claim == 0 || !a.ready:
		return true
	}
	open, asked := false, false
	for _, c := range a.calls {
		open, asked = open || c.end == 0, asked || c.awaits()
	}
	switch {
	case len(a.typed) > 0 && (asked || !open):
		return true
	case a.paused:
		return false
	}
	for _, c := range a.calls {
		if c.awaits() {
			return c.deadline
		}
	}
	return a.inTurn || a.pending() || a.again || a.compact || a.replay && !a.broken || a.own && (a.script || a.hook)
}
