package session

import "fmt"

// TrustSet says whether the session's repository is trusted from now on. Custom secrets reach the sandbox, and scripts of the repository run on an
// open network, only if it is.
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

// SetUpBegan says that the script of the checkout is about to run. Confined says that the network stays closed to it.
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

// Trusts is true if nothing is to be feared from the session's repository: there is none, or the person trusts it.
func (s State) Trusts() bool {
	return s.Created.Repository == "" || s.Trust.Trusted || s.Created.Trusted && s.Trust.Reason == ""
}

// SetTrust records whether the repository is trusted. What the person said outweighs what was found out.
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

// ScriptsCall is the open call that asks about scripts of the repository.
func (s State) ScriptsCall() (OpenCall, bool) {
	for _, c := range s.Open {
		if c.Origin == OriginSetUp {
			return c, true
		}
	}
	return OpenCall{}, false
}

// Resumes is the agent's state after a call that the model did not make.
func (c OpenCall) Resumes(s State) AgentState {
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
