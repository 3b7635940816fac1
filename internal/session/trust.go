package session

import (
	"encoding/json"
	"fmt"
)

// TrustSet says whether the session's repository is trusted from now on. Custom
// secrets reach the sandbox, and scripts of the repository run on an open
// network, only if it is.
type TrustSet struct {
	Trusted bool        `json:"trusted"`
	Reason  TrustReason `json:"reason"`
}

// TrustReason is why a repository is trusted or not.
type TrustReason string

// The reasons.
const (
	TrustByUser  TrustReason = "user"      // the person said so in this session, or took it back
	TrustByList  TrustReason = "listed"    // the person trusts it in every session
	TrustByPush  TrustReason = "push"      // the person can push to it
	TrustNoPush  TrustReason = "read_only" // the person cannot push to it
	TrustUnknown TrustReason = "unknown"   // the git provider did not say
	TrustOutside TrustReason = "outside"   // see Created.Outside
)

// SetUpBegan says that the script of the checkout is about to run. Confined says
// that the network stays closed to it.
type SetUpBegan struct {
	Script   string `json:"script"`
	Hash     string `json:"hash"` // SHA-256 of the script, in hex
	Confined bool   `json:"confined,omitempty"`
}

// HookSet says what became of the repository's script for commits.
type HookSet struct {
	Script string `json:"script"`
	// Hash is the SHA-256 of the script when it was checked out, in hex; no other runs.
	Hash      string `json:"hash,omitempty"`
	Installed bool   `json:"installed,omitempty"`
	// Problem is why it was not installed.
	Problem string `json:"problem,omitempty"`
}

// Trusts is true if nothing is to be feared from the session's repository: there
// is none, or the person trusts it.
func (s State) Trusts() bool {
	return s.Created.Repository == "" || s.Trust.Trusted || s.Created.Trusted && s.Trust.Reason == ""
}

// SetTrust records whether the repository is trusted. What the person said
// outweighs what was found out.
func (s State) SetTrust(t TrustSet) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.Created.Repository == "" {
		return nil, fmt.Errorf("%w: the conversation has no repository", ErrRefused)
	}
	if t == s.Trust || s.Trust.Reason == TrustByUser && t.Reason != TrustByUser {
		return nil, nil
	}
	return []Payload{t}, nil
}

// AsksScripts is true if the person is asked before scripts of the repository
// run: in confirmation mode, and where outsiders may have chosen what runs.
func (s State) AsksScripts(confirm bool) bool {
	return confirm || s.Created.Outside != "" && !(s.Trust.Trusted && s.Trust.Reason == TrustByUser)
}

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

// ScriptTerms are under which conditions scripts run.
type ScriptTerms struct {
	// Ask says that the person is asked first, with Question.
	Ask      bool
	Question ApprovalAsked
	// Confinable says that the network can be closed to a script.
	Confinable bool
	// Hooked says that the script for commits is in its place.
	Hooked bool
}

// toolOfScripts is the tool whose calls clients know to show as a command.
const toolOfScripts = "execute_bash"

// ScriptsCall is the open call that asks about scripts of the repository.
func (s State) ScriptsCall() (OpenCall, bool) {
	for _, c := range s.Open {
		if c.Origin == OriginSetUp {
			return c, true
		}
	}
	return OpenCall{}, false
}

// Approved is true if the person approved exactly these scripts.
func (s State) Approved(r Scripts) bool {
	c, open := s.ScriptsCall()
	return open && c.Approved && c.ID == r.callID()
}

// BeginScripts says what becomes of the scripts of the checkout: the person is
// asked, or the set-up script begins, or is skipped, and the script for commits
// is in its place or is not.
func (s State) BeginScripts(r Scripts, t ScriptTerms) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
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
		return append(s.withdraw(question, open), s.skipScripts(r.Problem)...), nil
	case t.Ask && !same:
		return s.askScripts(r, t.Question, question, open)
	case same && question.Denied:
		return append(s.closeScripts(question, Rejected, "Rejected. The scripts do not run."), s.skipScripts("it was rejected.")...), nil
	}
	var out []Payload
	if same {
		out = s.closeScripts(question, Succeeded, "Approved.")
	} else {
		out = s.withdraw(question, open)
	}
	return append(out, s.runScripts(r, t)...), nil
}

// askScripts asks the person. A question about other scripts is withdrawn.
func (s State) askScripts(r Scripts, ask ApprovalAsked, before OpenCall, open bool) ([]Payload, error) {
	_, asked := s.Awaiting()
	if s.Claim == 0 || s.Paused || s.Stopped || s.Failed || asked && !(open && before.Awaits()) {
		return nil, nil // it is asked when the session goes on
	}
	args, err := json.Marshal(map[string]string{"command": r.Text})
	if err != nil {
		return nil, err
	}
	ask.ID = r.callID()
	call := ToolCalled{ToolCall: ToolCall{ID: ask.ID, Name: toolOfScripts, Args: args}, Thought: ask.Reason, Risk: RiskUnknown, Totals: s.Totals, Awaits: true, Origin: OriginSetUp}
	return append(s.withdraw(before, open), call, ask), nil
}

// withdraw closes a question that is not to be answered any more.
func (s State) withdraw(c OpenCall, open bool) []Payload {
	if !open {
		return nil
	}
	return s.closeScripts(c, Cancelled, "Not run: the scripts changed after this approval was requested.")
}

func (s State) closeScripts(c OpenCall, how Outcome, output string) []Payload {
	out := []Payload{ToolReturned{ID: c.ID, Name: c.Name, Cause: c.Number, Outcome: how, Output: output, Origin: c.Origin}}
	if c.resumes(s) == AgentRunning {
		out = append(out, StateChanged{State: AgentRunning})
	}
	return out
}

// skipScripts records that none of the scripts runs.
func (s State) skipScripts(why string) []Payload {
	var out []Payload
	if p := s.Checkout.Script; p != "" && s.SetUp == nil {
		out = append(out, SetUp{Script: p, Exit: -1, Problem: p + " was not run: " + why})
	}
	if p := s.Checkout.Hook; p != "" && s.Hook == nil {
		out = append(out, HookSet{Script: p, Problem: p + " was not installed: " + why})
	}
	return out
}

// runScripts records what runs now, and what does not because the repository is
// not trusted.
func (s State) runScripts(r Scripts, t ScriptTerms) []Payload {
	var out []Payload
	if p := s.Checkout.Hook; p != "" && s.Hook == nil {
		switch {
		case s.Trusts() && t.Hooked:
			out = append(out, HookSet{Script: p, Hash: r.Hook, Installed: true})
		case s.Trusts():
			out = append(out, HookSet{Script: p, Problem: p + " was not installed: the repository keeps its hooks elsewhere, or the script is gone."})
		default:
			out = append(out, HookSet{Script: p, Hash: r.Hook, Problem: p + " was not installed: the repository is not trusted."})
		}
	}
	p := s.Checkout.Script
	switch {
	case p == "" || s.SetUp != nil:
	case r.SetUp == "":
		out = append(out, SetUp{Script: p, Exit: -1, Problem: p + " was not run: it cannot be read."})
	case !s.Trusts() && !t.Confinable:
		out = append(out, SetUp{Script: p, Exit: -1, Problem: p + " was not run: the repository is not trusted, and this sandbox cannot close the network to it."})
	default:
		out = append(out, SetUpBegan{Script: p, Hash: r.SetUp, Confined: !s.Trusts()})
	}
	return out
}

// resumes is the agent's state after a call that the model did not make.
func (c OpenCall) resumes(s State) AgentState {
	switch {
	case s.InTurn && s.Agent != AgentRateLimited:
		return AgentRunning
	case s.Agent == AgentAwaitingYes || s.Agent == AgentUserYes || s.Agent == AgentUserNo:
		return c.Before
	}
	return s.Agent
}

// SetHook records what became of the script for commits.
func (s State) SetHook(h HookSet) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.Hook != nil && *s.Hook == h {
		return nil, nil
	}
	return []Payload{h}, nil
}

// Confined is true while a script runs to which the network is closed.
func (s State) Confined() bool {
	return s.SettingUp != nil && s.SettingUp.Confined && s.SetUp == nil
}

// checkScripts holds for the question about scripts of the repository.
func (s State) checkScripts(p ToolCalled) error {
	switch {
	case p.Origin != OriginSetUp || !p.Awaits:
		return s.no(p, "the repository's scripts are asked about")
	case s.Checkout == nil || s.Paused || s.SettingUp != nil || s.SetUp != nil:
		return s.no(p, "scripts of a checkout are asked about before they run")
	}
	if _, open := s.ScriptsCall(); open {
		return s.no(p, "scripts are asked about once at a time")
	}
	return nil
}
