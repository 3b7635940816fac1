package session

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The rules. Each is a pure question to a State: what must be appended for this to happen? Those of the loop take the
// claim it holds, so that a loop that lost the session is refused whatever it wants.

// Begin is the creation of a session, with its first message if there is one, and more that is known from the start, such as its title.
func (s State) Begin(c Created, first *UserSaid, more ...Payload) ([]Payload, error) {
	if s.Exists() {
		return nil, fmt.Errorf("%w: the conversation already exists", ErrRefused)
	}
	if c.Replay != "" { // what is recorded comes first
		c.Then, first = first, nil
	}
	out := []Payload{c}
	if first != nil {
		out = append(out, *first)
	}
	return append(out, more...), nil
}

// Say records a message. It wakes a stopped session and ends a pause: a person who writes wants an answer.
func (s State) Say(m UserSaid) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if m.Key != "" && s.Delivered(m.Key) {
		return nil, ErrDuplicate
	}
	if s.Stopped || s.Failed {
		return []Payload{m, StartRequested{}}, nil
	}
	if s.Paused || s.Pausing {
		return []Payload{m, Resumed{}}, nil
	}
	return []Payload{m}, nil
}

// Start opens a stopped session again; on a running one it changes nothing.
func (s State) Start() ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if !s.Stopped && !s.Failed {
		return nil, nil
	}
	return []Payload{StartRequested{}}, nil
}

// Stop closes the session: whatever is under way is settled first, so that the history stays well formed.
func (s State) Stop(reason string) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.Stopped || s.Failed {
		return nil, nil
	}
	return append(s.close(byStop), Stopped{Reason: reason}), nil
}

// Pause halts a working agent after the step in progress: a model call or a tool call. Where none is in progress, it is halted at once.
func (s State) Pause() ([]Payload, error) {
	if s.Pausing && s.stepping() {
		return nil, s.alive()
	}
	if !s.Exists() || s.Deleted || !s.pausable() || !s.stepping() {
		return s.PauseNow()
	}
	return []Payload{PauseRequested{}}, nil
}

// stepping is true while a model call or a tool call is in progress.
func (s State) stepping() bool {
	_, asked := s.Awaiting()
	return s.Ask != nil || len(s.Open) > 0 && !asked
}

func (s State) pausable() bool {
	return s.InTurn && !s.Paused && !s.Stopped && !s.Failed && s.Claim != 0
}

// PauseDue is the pause that was asked for, when the step that was in progress is over.
func (s State) PauseDue(claim int64) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if !s.Pausing || !s.pausable() || s.Ask != nil || len(s.Open) > 0 {
		return nil, nil
	}
	return []Payload{Paused{AfterStep: true}}, nil
}

// PauseNow halts a working agent and interrupts the step in progress.
func (s State) PauseNow() ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if !s.pausable() {
		return nil, nil
	}
	out := s.settle(byPause)
	for i, p := range out {
		if f, ok := p.(ModelFailed); ok { // the turn goes on with this call
			f.Retried = true
			out[i] = f
		}
	}
	return append(out, Paused{AfterStep: len(out) == 0}), nil
}

// Resume ends a pause or takes back one that was asked for, and takes up a turn again that ended in an error; where
// there is neither it changes nothing.
func (s State) Resume() ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.Stopped || s.Failed {
		return s.Start()
	}
	broken := !s.InTurn && !s.Again && s.ErrorID != ""
	if s.Claim == 0 || !s.Paused && !s.Pausing && !broken {
		return nil, nil
	}
	return []Payload{Resumed{}}, nil
}

// Decide is the answer to an approval; without an ID it is the one that is asked. A no changes neither the call nor what is asked about later.
func (s State) Decide(g ApprovalGiven) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	for _, c := range s.Open {
		if (g.ID == "" || c.ID == g.ID) && c.Awaits() {
			if g.ID = c.ID; !g.Approved {
				g.Args, g.Always = nil, ""
			}
			if c.Origin != "" && (g.Args != nil || g.Always != "") {
				return nil, fmt.Errorf("%w: repository scripts cannot be edited or always allowed", ErrRefused)
			}
			return []Payload{g}, nil
		}
	}
	if g.ID != "" {
		return nil, fmt.Errorf("%w: that call is not waiting for approval", ErrRefused)
	}
	return nil, fmt.Errorf("%w: no call is waiting for approval", ErrRefused)
}

// Rename gives the title a person chose.
func (s State) Rename(title string) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	title = strings.TrimSpace(title)
	if title == "" {
		return nil, fmt.Errorf("%w: the title must not be empty", ErrRefused)
	}
	if title == s.Title && s.Named {
		return nil, nil
	}
	return []Payload{Titled{Title: title, ByUser: true}}, nil
}

// Delete ends the session permanently.
func (s State) Delete() ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	return append(s.close(byDelete), Deleted{}), nil
}

// Take claims the session for a member. live are the other members that are alive: if one of them holds the session, the error is ErrHeld.
//
// A model call that the last owner left open is taken to have cost all that was reserved for it: the limit must hold
// even if the answer was on its way. Open tool calls stay open, for the runner knows how they ended.
func (s State) Take(by string, live ...string) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.Stopped || s.Failed {
		return nil, fmt.Errorf("%w: the conversation is stopped", ErrRefused)
	}
	if holder := s.Holder(); holder != "" && holder != by && slices.Contains(live, holder) {
		return nil, fmt.Errorf("%w: %s", ErrHeld, holder)
	}
	out := []Payload{Claimed{By: by}}
	if s.Ask != nil {
		f := s.lost("owner_lost", "The server was restarted during this call; the call is repeated.", s.Ask.Reserved)
		f.Retried = true
		out = append(out, f)
	}
	return out, nil
}

// Prepared says the workspace is ready, and that the agent waits if nothing is to be done.
func (s State) Prepared(claim int64, w WorkspaceReady) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	var out []Payload
	// A workspace started anew is found by its new handle; one that is not needed yet has none.
	if !s.Ready || s.Step != "" || len(w.Handle) > 0 && (!s.Up || !bytes.Equal(s.Handle, w.Handle)) {
		out = append(out, w)
	}
	if s.Agent == AgentLoading && !s.Pending() && !s.InTurn && !s.Replaying() {
		out = append(out, StateChanged{State: AgentAwaitingUser})
	}
	return out, nil
}

// Progressed says how far the workspace is.
func (s State) Progressed(claim int64, w WorkspaceStep) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	return []Payload{w}, nil
}

// SetEgress changes how the conversation may reach the network.
func (s State) SetEgress(e EgressSet) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if e.Mode == s.Egress.Mode && slices.Equal(e.Allow, s.Egress.Allow) {
		return nil, nil
	}
	return []Payload{e}, nil
}

// BeginTurn takes up the waiting messages, or a turn that ended in an error.
func (s State) BeginTurn(claim int64) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if s.InTurn || !s.Pending() && !s.Again {
		return nil, nil
	}
	return []Payload{TurnBegan{}}, nil
}

// AskModel reserves the money for a call: only as much as the limit still holds, which is the budget (if there is one) or what a parent granted.
func (s State) AskModel(claim int64, a ModelAsked, budget *Money) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if !s.InTurn && (s.Compact == nil || a.Purpose != ForSummary) || s.Paused || s.Pausing {
		return nil, fmt.Errorf("%w: no turn is in progress", ErrRefused)
	}
	if err := s.affords(a, budget); err != nil {
		return nil, err
	}
	a.UpTo = s.Last
	if s.Agent == AgentRateLimited { // it waited long enough
		return []Payload{StateChanged{State: AgentRunning}, a}, nil
	}
	return []Payload{a}, nil
}

func (s State) affords(a ModelAsked, budget *Money) error {
	if s.Ask != nil {
		return fmt.Errorf("%w: a model call is in progress", ErrRefused)
	}
	if limit, ok := s.Budget(budget); ok && a.Reserved > limit-s.Committed() {
		return &BudgetError{Spent: s.Totals.Cost, Needed: a.Reserved, Budget: limit}
	}
	return nil
}

// Untitled is true after one of the first turns of a conversation that has no title from a person or the model.
func (s State) Untitled() bool {
	return s.Turns >= 1 && s.Turns <= maxTitleTurns && !s.Named && !s.Entitled && !s.InTurn && !s.Paused && !s.Pending() && !s.Wants() && s.Status() == Running &&
		(s.Agent == AgentAwaitingUser || s.Agent == AgentFinished) && s.Created.Parent == "" && s.Created.Replay == ""
}

// AskTitle reserves the money for a call that names the conversation.
func (s State) AskTitle(claim int64, a ModelAsked, budget *Money) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if !s.Untitled() {
		return nil, fmt.Errorf("%w: the conversation needs no title", ErrRefused)
	}
	if err := s.affords(a, budget); err != nil {
		return nil, err
	}
	a.Purpose, a.UpTo = ForTitle, s.Last
	return []Payload{a}, nil
}

// Answered settles a call with its answer.
func (s State) Answered(claim int64, a ModelAnswered) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if s.Ask == nil || s.Ask.Call != a.Call {
		return nil, fmt.Errorf("%w: the model call has already ended", ErrRefused)
	}
	a.Purpose, a.Totals = s.Ask.Purpose, s.Totals.plus(a.Usage, a.Cost)
	return []Payload{a}, nil
}

// AskFailed settles a call that gave no answer; retried says that it is made again.
func (s State) AskFailed(claim int64, call, class, message string, cost Money, retried bool) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if s.Ask == nil || s.Ask.Call != call {
		return nil, fmt.Errorf("%w: the model call has already ended", ErrRefused)
	}
	f := s.lost(class, message, cost)
	f.Retried = retried
	return []Payload{f}, nil
}

// CallNext starts the next tool call of the answer, or asks the person about it. Clients are told that a call waits
// before they are told of the call: legacy front ends draw their buttons when the call arrives, and never again.
func (s State) CallNext(claim int64, risk Risk, ask *ApprovalAsked) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if len(s.Announced) == 0 || s.Paused || s.Pausing {
		return nil, fmt.Errorf("%w: no tool call is pending", ErrRefused)
	}
	if _, asked := s.Awaiting(); asked && ask != nil {
		return nil, fmt.Errorf("%w: the person is asked about another call", ErrRefused)
	}
	c := s.Announced[0]
	called := ToolCalled{ToolCall: c, Thought: s.Thought, Risk: risk, Answer: s.Answer, InAnswer: s.InAnswer, Totals: s.Totals, Usage: s.Used, Awaits: ask != nil}
	if ask == nil {
		return []Payload{called}, nil
	}
	asked := *ask
	asked.ID, asked.Told = c.ID, true
	return []Payload{StateChanged{State: AgentAwaitingYes, Reason: asked.Reason}, called, asked}, nil
}

// SkipRest gives the calls of an answer that is over the result that they were not made, so that each has one.
func (s State) SkipRest(claim int64, why string) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	var out []Payload
	n, thought := s.Last, s.Thought
	for _, c := range s.Announced {
		out = append(out,
			ToolCalled{ToolCall: c, Thought: thought, Risk: RiskUnknown, Answer: s.Answer, InAnswer: s.InAnswer, Totals: s.Totals, Usage: s.Used},
			ToolReturned{ID: c.ID, Name: c.Name, Cause: n + 1, Outcome: Cancelled, Output: why, Args: c.Args})
		n, thought = n+2, ""
	}
	return out, nil
}

// Returned records the one result of a call. If a person decided about it and the agent goes on, clients are told so:
// to them it would seem to be at that call until the end of the turn.
func (s State) Returned(claim int64, r ToolReturned) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	c, ok := s.call(r.ID)
	if !ok {
		return nil, fmt.Errorf("%w: the call has its result", ErrRefused)
	}
	r.Cause, r.Name = c.Number, c.Name
	if r.Outcome == Unknown { // all that is known of it is what it had written
		if written := s.partial(r.ID); written != "" {
			r.Output, r.Partial = lostAfter(written, r.Output), true
		}
	}
	if s.Agent == AgentUserYes || s.Agent == AgentUserNo && s.Over == "" {
		return []Payload{r, StateChanged{State: AgentRunning}}, nil
	}
	return []Payload{r}, nil
}

// EndTurn says the agent is done with everything up to upTo. A turn that a person paused is not ended behind their back.
func (s State) EndTurn(claim int64, end TurnEnded) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if !s.InTurn || s.Paused {
		return nil, fmt.Errorf("%w: no turn is in progress", ErrRefused)
	}
	return []Payload{end}, nil
}

// Fail says the session could not be started.
func (s State) Fail(claim int64, id, reason string) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	return append(s.close(failed), Failed{ID: id, Reason: reason}), nil
}

// Suggest names the conversation unless a person did.
func (s State) Suggest(claim int64, title string) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if s.Named || title == "" || title == s.Title {
		return nil, nil
	}
	return []Payload{Titled{Title: title}}, nil
}

func (s State) alive() error {
	switch {
	case !s.Exists():
		return ErrNotFound
	case s.Deleted:
		return ErrDeleted
	}
	return nil
}

func (s State) owned(claim int64) error {
	if err := s.alive(); err != nil {
		return err
	}
	if claim == 0 || s.Claim != claim {
		return ErrNotOwner
	}
	return nil
}

// Chain asks several rules in a row, each on the state after the ones before it, so that one append can carry what belongs together.
func Chain(rules ...func(State) ([]Payload, error)) func(State) ([]Payload, error) {
	return func(s State) ([]Payload, error) {
		var out []Payload
		for _, rule := range rules {
			payloads, err := rule(s)
			if err != nil {
				return nil, err
			}
			for _, p := range payloads {
				s = s.Apply(Event{Number: s.Last + 1, At: s.UpdatedAt, Payload: p})
			}
			out = append(out, payloads...)
		}
		return out, nil
	}
}

// Override chooses the model, its effort, the limit, plan mode and approvals for this conversation alone.
func (s State) Override(o Overridden) ([]Payload, error) {
	if err := s.alive(); err != nil || o == s.Overrides {
		return nil, err
	}
	return []Payload{o}, nil
}

// Over is o where it says something, and otherwise what is below it: a session that was delegated goes by what was chosen for the one above it.
func (o Overridden) Over(below Overridden) Overridden {
	o.Model, o.Effort, o.Approval = cmp.Or(o.Model, below.Model), cmp.Or(o.Effort, below.Effort), cmp.Or(o.Approval, below.Approval)
	if !o.Limited {
		o.Budget, o.Limited = below.Budget, below.Limited
	}
	o.Plan = o.Plan || below.Plan
	return o
}

// CompactAsked records the user's request to condense the history, with instructions for the summary. A Condensed event completes the request, or
// a Noted event with the ID NoteCompactFailed has the reason why it failed.
type CompactAsked struct {
	Instructions string `json:"instructions,omitempty"`
}

// NoteCompactFailed is the ID of the notice that compacting failed.
const NoteCompactFailed = "STATUS$COMPACT_FAILED"

// AskCompact records the request. It starts a stopped session.
func (s State) AskCompact(c CompactAsked) ([]Payload, error) {
	out, err := s.Start()
	if err == nil && (s.Compact != nil || s.Replaying()) {
		err = fmt.Errorf("%w: the conversation is already being compacted, or a recording is being replayed", ErrRefused)
	}
	return append(out, c), err
}
