package session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The rules. Each is a pure question to a State: what must be appended for
// this to happen? Those of the loop take the claim it holds, so that a loop
// that lost the session is refused whatever it wants.

// Begin is the creation of a session, with its first message if there is one.
func (s State) Begin(c Created, first *UserSaid) ([]Payload, error) {
	if s.Exists() {
		return nil, fmt.Errorf("%w: the conversation exists", ErrRefused)
	}
	out := []Payload{c}
	if first != nil {
		out = append(out, *first)
	}
	return out, nil
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
	if s.Paused {
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
	return append(s.settle("stopped"), Stopped{Reason: reason}), nil
}

// Pause halts a working agent between steps.
func (s State) Pause() ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if !s.InTurn || s.Paused || s.Stopped || s.Failed || s.Claim == 0 {
		return nil, nil
	}
	return append(s.settle("paused"), Paused{}), nil
}

// Resume ends a pause; where there is none it changes nothing.
func (s State) Resume() ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.Stopped || s.Failed {
		return s.Start()
	}
	if !s.Paused || s.Claim == 0 {
		return nil, nil
	}
	return []Payload{Resumed{}}, nil
}

// Decide is the person's answer to an approval; id "" means the one that is asked.
func (s State) Decide(id string, yes bool, reason string) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	for _, c := range s.Open {
		if (id == "" || c.ID == id) && c.Asked && !c.Approved && !c.Denied {
			return []Payload{ApprovalGiven{ID: c.ID, Approved: yes, Reason: reason}}, nil
		}
	}
	return nil, fmt.Errorf("%w: nothing waits for approval", ErrRefused)
}

// Rename gives the title a person chose.
func (s State) Rename(title string) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	title = strings.TrimSpace(title)
	if title == "" {
		return nil, fmt.Errorf("%w: a title is not empty", ErrRefused)
	}
	if title == s.Title && s.Named {
		return nil, nil
	}
	return []Payload{Titled{Title: title, ByUser: true}}, nil
}

// Delete ends the session for ever.
func (s State) Delete() ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	return append(s.settle("deleted"), Deleted{}), nil
}

// Take claims the session for a loop. A model call that the last owner left
// open is taken to have cost all that was reserved for it: the limit must hold
// even if the answer was on its way. Open tool calls stay open, for the runner
// knows how they ended.
func (s State) Take(by string) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.Stopped || s.Failed {
		return nil, fmt.Errorf("%w: the session is stopped", ErrRefused)
	}
	out := []Payload{Claimed{By: by}}
	if s.Ask != nil {
		out = append(out, s.lost("owner_lost", "The server was restarted during this call; it is made again.", s.Ask.Reserved))
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
	if !s.Ready || s.Step != "" || len(w.Handle) > 0 && !bytes.Equal(s.Handle, w.Handle) {
		out = append(out, w)
	}
	if s.Agent == AgentLoading && !s.Pending() && !s.InTurn {
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

// BeginTurn takes up the waiting messages.
func (s State) BeginTurn(claim int64) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if s.InTurn || !s.Pending() {
		return nil, nil
	}
	return []Payload{TurnBegan{}}, nil
}

// AskModel reserves the money for a call; if limited, only as much as the budget still holds.
func (s State) AskModel(claim int64, call, model string, reserve, budget Money, limited bool) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if !s.InTurn || s.Paused {
		return nil, fmt.Errorf("%w: no turn is under way", ErrRefused)
	}
	if s.Ask != nil {
		return nil, fmt.Errorf("%w: a model call is under way", ErrRefused)
	}
	if limited && reserve > budget-s.Totals.Cost {
		return nil, &BudgetError{Spent: s.Totals.Cost, Needed: reserve, Budget: budget}
	}
	return []Payload{ModelAsked{Call: call, Model: model, Reserved: reserve, UpTo: s.Last}}, nil
}

// Answered settles a call with its answer.
func (s State) Answered(claim int64, a ModelAnswered) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if s.Ask == nil || s.Ask.Call != a.Call {
		return nil, fmt.Errorf("%w: the model call was settled meanwhile", ErrRefused)
	}
	a.Totals = s.Totals.plus(a.Usage, a.Cost)
	return []Payload{a}, nil
}

// AskFailed settles a call that gave no answer.
func (s State) AskFailed(claim int64, call, class, message string, cost Money) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if s.Ask == nil || s.Ask.Call != call {
		return nil, fmt.Errorf("%w: the model call was settled meanwhile", ErrRefused)
	}
	return []Payload{s.lost(class, message, cost)}, nil
}

// CallNext starts the next tool call of the answer.
func (s State) CallNext(claim int64, risk Risk, approval bool) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if len(s.Announced) == 0 || s.Paused {
		return nil, fmt.Errorf("%w: no tool call waits", ErrRefused)
	}
	c := s.Announced[0]
	out := []Payload{ToolCalled{ToolCall: c, Thought: s.Thought, Risk: risk, Answer: s.Answer, InAnswer: s.InAnswer, Totals: s.Totals}}
	if approval {
		out = append(out, ApprovalAsked{ID: c.ID})
	}
	return out, nil
}

// Returned records the one result of a call.
func (s State) Returned(claim int64, r ToolReturned) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	c, ok := s.call(r.ID)
	if !ok {
		return nil, fmt.Errorf("%w: the call has its result", ErrRefused)
	}
	r.Cause, r.Name = c.Number, c.Name
	return []Payload{r}, nil
}

// EndTurn says the agent is done with everything up to upTo.
func (s State) EndTurn(claim int64, end TurnEnded) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if !s.InTurn {
		return nil, fmt.Errorf("%w: no turn is under way", ErrRefused)
	}
	return []Payload{end}, nil
}

// Fail says the session could not be started.
func (s State) Fail(claim int64, id, reason string) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	return append(s.settle(failed), Failed{ID: id, Reason: reason}), nil
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

// failed is why calls are settled that may have been begun.
const failed = "failed"

// settle closes whatever is open, so that Stopped, Paused or Deleted may follow.
func (s State) settle(why string) []Payload {
	var out []Payload
	if s.Ask != nil {
		// The call is aborted; what the provider counted until then is unknown,
		// so the reservation is what it may have cost.
		out = append(out, s.lost("cancelled", "The call was aborted: "+why+".", s.Ask.Reserved))
	}
	for _, c := range s.Open {
		outcome, output := Cancelled, "The call was ended: "+why+"."
		switch {
		case c.Denied:
			outcome = Rejected
		case why == failed:
			outcome, output = Unknown, "The sandbox cannot be reached, so nobody can tell whether this was done."
		}
		out = append(out, ToolReturned{ID: c.ID, Name: c.Name, Cause: c.Number, Outcome: outcome, Output: output})
	}
	return out
}

func (s State) lost(class, message string, cost Money) ModelFailed {
	return ModelFailed{Call: s.Ask.Call, Class: class, Message: message, Cost: cost, Totals: s.Totals.plus(Usage{}, cost)}
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

// BudgetError says a call was not made because it might have exceeded the limit.
type BudgetError struct{ Spent, Needed, Budget Money }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of $%.2f does not cover the next model call: $%.4f are spent and it may cost up to $%.4f",
		e.Budget.Dollars(), e.Spent.Dollars(), e.Needed.Dollars())
}

// Chain asks several rules in a row, each on the state after the ones before
// it, so that one append can carry what belongs together.
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
