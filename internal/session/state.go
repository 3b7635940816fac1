package session

import (
	"encoding/json"
	"slices"
	"time"
)

// State is what a session's events add up to. It is a value: Apply returns the next one and never changes the one it is called on. It does not hold
// the history, so its size and the cost of a step do not grow with it; the few lists it needs share their tails (see step and delivery).
type State struct {
	ID              ID
	Last            int64
	Owner           string
	Title           string
	Named, Entitled bool // a person gave the title; the model has answered a call for one
	CreatedAt       time.Time
	UpdatedAt       time.Time

	Created                          Created
	Deleted, Stopped, Failed, Paused bool
	Halt                             int64  // the number of the event that stopped it last
	Pausing                          bool   // it pauses after the step in progress
	ErrorID                          string // why it failed or ended in error
	Reason                           string
	Agent                            AgentState
	Briefing                         bool // the model's briefing is in the log

	// Claim is the number of the Claimed event in force, 0 if none since the last start.
	Claim     int64
	ClaimedBy string
	Ready     bool
	// Step is how far a workspace that is being made is, "" otherwise.
	Step string
	// Handle finds the workspace again; it outlives a stop. Up is true when the sandbox was started since the session was. HandleAt is the number of the event that replaced another handle with this one, 0 if there was no other.
	Handle   json.RawMessage
	HandleAt int64
	Up       bool
	// Checkout is the repository in the workspace, and SetUp how its script ended; nil before.
	Checkout *CheckedOut
	SetUp    *SetUp
	// Trust is what is known of the repository, SettingUp the script that was begun, and Hook what became of its script for commits; nil before.
	Trust     TrustSet
	SettingUp *SetUpBegan
	Hook      *HookSet
	Egress    EgressSet
	// Overrides are what the person chose for this conversation alone.
	Overrides Overridden
	// Checkpoint is the newest checkpoint of the workspace, 0 if there is none. Undo are restores that can be taken back, Redo those that were, newest last.
	Checkpoint int
	Undo, Redo []Restored
	// Ran is when the last tool call ended, RanBefore that of the last one before the turn began, was resumed, was approved or got a new owner.
	Ran, RanBefore time.Time
	Worked         bool          // a tool call of this turn ended
	Compact        *CompactAsked // not carried out yet

	InTurn bool
	// Again is true when a turn that ended in an error is to be taken up again.
	Again     bool
	Asks      int   // model calls of this turn
	Turns     int   // turns that ended by themselves
	LastSaid  int64 // newest message of the person
	Began     int64 // number of the last TurnBegan
	Seen      int64 // events up to here are dealt with
	Shown     int64 // events up to here were shown to the model
	Automated bool  // the turn, or the one to begin, answers messages that no person sent
	Ask       *OpenAsk
	// Announced are calls that the model made and that were not started yet, in order.
	Announced []ToolCall
	Open      []OpenCall
	// Typed are commands that people typed and that have no result yet, in order.
	Typed    []TypedCommand
	Answer   int64 // number of the last ModelAnswered
	InAnswer int
	Used     Usage  // by it
	Thought  string // its text, until the first call carries it
	// Over is true when nothing more is to be done for this answer: the agent said that it is done, or the person said no.
	Over AgentState
	// Allowed are the patterns of calls that are not asked about.
	Allowed []string

	// Requests are the conversation's newest pull requests, oldest first.
	Requests []RequestOpened

	Totals   Totals
	Reserved Money
	// Limit is what the session may ever spend, if Limited: a grant of its parent's.
	Limit   Money
	Limited bool
	Grants  []Granted

	// Replay is how many steps of the recorded trajectory were run. Spoke is the
	// first message of a person during it, which is answered after it; 0 if none.
	Replay     int
	ReplayDone bool
	Spoke      int64

	// written is what a call that is under way has written so far; nil if it is not known.
	written   func(call string) string
	paid      []ID // children of the open calls that are settled
	steps     *step
	delivered *delivery
	keys      int
	said      []int64 // the messages of people after Seen, in order
	heard     int64   // the newest message that cannot be withdrawn: of a recording, or imported
}

// OpenAsk is a model call without an answer.
type OpenAsk struct {
	Call     string
	Number   int64
	Reserved Money
	UpTo     int64
	Purpose  string
}

// OpenCall is a tool call without a result.
type OpenCall struct {
	ID     string
	Name   string
	Number int64
	// Since is the number of the event since which it may be made: its own, or that of its approval.
	Since int64
	// Asked and Approved tell where its approval stands, Why the person said no.
	Asked    bool
	Approved bool
	Denied   bool
	Why      string
	// Args are the person's in place of the model's; nil if they are unchanged.
	Args json.RawMessage
	// Given are the model's.
	Given json.RawMessage
	// Deadline is when Default becomes the answer.
	Deadline time.Time
	Default  bool
	// Elsewhere says that it was made where the session was taken over from, so that its result comes from there too.
	Elsewhere bool
	// Origin is who wants it, and Before the agent's state when the person was asked.
	Origin Origin
	Before AgentState
}

// Awaits is true while the person is asked about the call.
func (c OpenCall) Awaits() bool { return c.Asked && !c.Approved && !c.Denied }

// step is a stretch of events in which some tool call was open. A condensation must not end or begin inside one. The list shares its tail between states.
type step struct {
	from, to int64 // to is 0 while open
	prev     *step
}

// delivery is a message key seen before, newest first.
type delivery struct {
	key  string
	prev *delivery
}

// rememberedKeys is how many message keys a session recognises as second deliveries. Older ones are caught by the API's stored answers.
const rememberedKeys = 256

// Exists is false for the State of a session that was not created.
func (s State) Exists() bool { return s.Last > 0 }

// Status is the conversation's state on the wire.
func (s State) Status() Status {
	switch {
	case s.Stopped || s.Failed || s.Deleted:
		return Halted
	case s.Claim > 0 && s.Ready:
		return Running
	default:
		return Starting
	}
}

// Pending is true while a message waits for the agent.
func (s State) Pending() bool { return s.LastSaid > s.Seen }

// Wants is true when a loop should hold the session and work on it.
func (s State) Wants() bool {
	switch {
	case !s.Exists() || s.Deleted || s.Stopped || s.Failed:
		return false
	case s.Claim == 0 || !s.Ready:
		return true
	case s.Typing():
		return true
	case s.Paused:
		return false
	}
	if c, ok := s.Awaiting(); ok {
		return !c.Deadline.IsZero() // the loop must wait for the deadline
	}
	// A replay that ended in an error waits, as every turn does that did.
	return s.InTurn || s.Pending() || s.Again || s.Compact != nil || s.Replaying() && s.ErrorID == "" || s.Checkout != nil && s.Unprepared()
}

// Holder is the member that should work on the session: the one that claimed it last, "" when the session does not want a loop.
func (s State) Holder() string {
	if !s.Wants() {
		return ""
	}
	return s.ClaimedBy
}

// Awaiting is the call that the person is asked about.
func (s State) Awaiting() (OpenCall, bool) {
	for _, c := range s.Open {
		if c.Awaits() {
			return c, true
		}
	}
	return OpenCall{}, false
}

// Replaying is true while steps of a recorded trajectory are left.
func (s State) Replaying() bool { return s.Created.Replay != "" && !s.ReplayDone }

// Counted is true for a child of an open call whose cost is among the totals.
func (s State) Counted(child ID) bool { return slices.Contains(s.paid, child) }

// call finds an open tool call.
func (s State) call(id string) (OpenCall, bool) {
	for _, c := range s.Open {
		if c.ID == id {
			return c, true
		}
	}
	return OpenCall{}, false
}

// Delivered is true when a message with this key is among the recent ones.
func (s State) Delivered(key string) bool {
	n := 0
	for d := s.delivered; d != nil && n < rememberedKeys; d, n = d.prev, n+1 {
		if d.key == key {
			return true
		}
	}
	return false
}

// splits reports whether a condensation of from..to would separate a call from its result.
func (s State) splits(from, to int64) bool {
	for st := s.steps; st != nil; st = st.prev {
		end := st.to
		if end == 0 { // still open: nothing may be condensed from its start on
			if to >= st.from {
				return true
			}
			continue
		}
		startsIn := st.from >= from && st.from <= to
		endsIn := end >= from && end <= to
		if startsIn != endsIn || (st.from < from && end > to) {
			return true
		}
	}
	return false
}

// Row is the session's row in lists.
func (s State) Row() Row {
	return Row{
		ID: s.ID, Owner: s.Owner, Title: s.Title, Status: s.Status(), Agent: s.Agent, ErrorID: s.ErrorID, Reason: s.Reason,
		Trigger: s.Created.Trigger, Repository: s.Created.Repository, Branch: s.Created.Branch, Provider: s.Created.Provider,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, Last: s.Last, Step: s.Step, Wants: s.Wants(), Holder: s.Holder(), Deleted: s.Deleted, Totals: s.Totals,
		Requests: s.Requests,
	}
}
