// Package scripts decides what becomes of the scripts of a session's repository: who is asked, and which of them run.
package scripts

import (
	"encoding/json"

	"deckhand/internal/session"
)

// Scripts are those of a checkout that run by themselves, as they are now.
type Scripts struct {
	// SetUp and Hook are hashes of the two, "" for one that there is not.
	SetUp, Hook string
	// Hash is over all of them, and Text is what the person is shown.
	Hash, Text string
	// Problem is why they cannot be shown; "" if they can.
	Problem string
}

// callID names the question about scripts, so that the answer is about these and
// no others.
func (r Scripts) callID() string { return "set-up-" + r.Hash }

// Terms are under which conditions scripts run.
type Terms struct {
	// Ask says that the person is asked first, with Question.
	Ask      bool
	Question session.ApprovalAsked
	// Confinable says that the network can be closed to a script.
	Confinable bool
	// Hooked says that the script for commits is in its place.
	Hooked bool
}

// toolOfScripts is the tool whose calls clients know to show as a command.
const toolOfScripts = "execute_bash"

// Approved is true if the person approved exactly these scripts.
func Approved(s session.State, r Scripts) bool {
	c, open := s.ScriptsCall()
	return open && c.Approved && c.ID == r.callID()
}

// Begin says what becomes of the scripts of the checkout: the person is
// asked, or the set-up script begins, or is skipped, and the script for commits
// is in its place or is not.
func Begin(s session.State, r Scripts, t Terms) ([]session.Payload, error) {
	switch {
	case !s.Exists():
		return nil, session.ErrNotFound
	case s.Deleted:
		return nil, session.ErrDeleted
	}
	if s.Checkout == nil || !s.Unprepared() || s.SettingUp != nil {
		return nil, nil
	}
	question, open := s.ScriptsCall()
	same := open && question.ID == r.callID()
	switch {
	case same && question.Awaits():
		return nil, nil
	case t.Ask && r.Problem != "":
		return append(withdraw(s, question, open), skip(s, r.Problem)...), nil
	case t.Ask && !same:
		return ask(s, r, t.Question, question, open)
	case same && question.Denied:
		return append(closeCall(s, question, session.Rejected, "Rejected. The scripts do not run."), skip(s, "it was rejected.")...), nil
	}
	var out []session.Payload
	if same {
		out = closeCall(s, question, session.Succeeded, "Approved.")
	} else {
		out = withdraw(s, question, open)
	}
	return append(out, run(s, r, t)...), nil
}

// ask asks the person. A question about other scripts is withdrawn.
func ask(s session.State, r Scripts, ask session.ApprovalAsked, before session.OpenCall, open bool) ([]session.Payload, error) {
	_, asked := s.Awaiting()
	if s.Claim == 0 || s.Paused || s.Stopped || s.Failed || asked && !(open && before.Awaits()) {
		return nil, nil // it is asked when the session goes on
	}
	args, err := json.Marshal(map[string]string{"command": r.Text})
	if err != nil {
		return nil, err
	}
	ask.ID = r.callID()
	call := session.ToolCalled{ToolCall: session.ToolCall{ID: ask.ID, Name: toolOfScripts, Args: args}, Thought: ask.Reason, Risk: session.RiskUnknown, Totals: s.Totals, Awaits: true, Origin: session.OriginSetUp}
	return append(withdraw(s, before, open), call, ask), nil
}

// withdraw closes a question that is not to be answered any more.
func withdraw(s session.State, c session.OpenCall, open bool) []session.Payload {
	if !open {
		return nil
	}
	return closeCall(s, c, session.Cancelled, "Not run: the scripts changed after this approval was requested.")
}

func closeCall(s session.State, c session.OpenCall, how session.Outcome, output string) []session.Payload {
	out := []session.Payload{session.ToolReturned{ID: c.ID, Name: c.Name, Cause: c.Number, Outcome: how, Output: output, Origin: c.Origin}}
	if c.Resumes(s) == session.AgentRunning {
		out = append(out, session.StateChanged{State: session.AgentRunning})
	}
	return out
}

// skip records that none of the scripts runs.
func skip(s session.State, why string) []session.Payload {
	var out []session.Payload
	if p := s.Checkout.Script; p != "" && s.SetUp == nil {
		out = append(out, session.SetUp{Script: p, Exit: -1, Problem: p + " was not run: " + why})
	}
	if p := s.Checkout.Hook; p != "" && s.Hook == nil {
		out = append(out, session.HookSet{Script: p, Problem: p + " was not installed: " + why})
	}
	return out
}

// run records what runs now, and what does not because the repository is
// not trusted.
func run(s session.State, r Scripts, t Terms) []session.Payload {
	var out []session.Payload
	if p := s.Checkout.Hook; p != "" && s.Hook == nil {
		switch {
		case s.Trusts() && t.Hooked:
			out = append(out, session.HookSet{Script: p, Hash: r.Hook, Installed: true})
		case s.Trusts():
			out = append(out, session.HookSet{Script: p, Problem: p + " was not installed: the repository keeps its hooks elsewhere, or the script is gone."})
		default:
			out = append(out, session.HookSet{Script: p, Hash: r.Hook, Problem: p + " was not installed: the repository is not trusted."})
		}
	}
	p := s.Checkout.Script
	switch {
	case p == "" || s.SetUp != nil:
	case r.SetUp == "":
		out = append(out, session.SetUp{Script: p, Exit: -1, Problem: p + " was not run: it cannot be read."})
	case !s.Trusts() && !t.Confinable:
		out = append(out, session.SetUp{Script: p, Exit: -1, Problem: p + " was not run: the repository is not trusted, and this sandbox cannot close the network to it."})
	default:
		out = append(out, session.SetUpBegan{Script: p, Hash: r.SetUp, Confined: !s.Trusts()})
	}
	return out
}
