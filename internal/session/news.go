package session

import "time"

// News is a change that people outside may want to be told of without following the log. It says what changed and where to look, never what was said.
type News struct {
	Kind NewsKind
	// Number and At are those of the event that brought it.
	Number int64
	At     time.Time
	Status Status
	Agent  AgentState
	// Before is the agent's state before the event.
	Before  AgentState
	ErrorID string
	// Parent is the session whose agent asked for this one, if one did.
	Parent ID
}

// NewsKind says what kind of change it is.
type NewsKind string

// The kinds of news.
const (
	NewsCreated NewsKind = "created"
	// NewsStateChanged is any change of the agent's state.
	NewsStateChanged NewsKind = "state_changed"
	// NewsFinished says that nothing is left to do: the last turn ended, however it did, and no message waits.
	NewsFinished NewsKind = "finished"
	// NewsNeedsApproval says that a call waits for the person.
	NewsNeedsApproval NewsKind = "needs_approval"
)

// addNews adds what an event brings that led from one state to the other. Most bring nothing, and then nothing is allocated.
func addNews(list []News, before, after State, e Event) []News {
	tell := func(kind NewsKind) {
		list = append(list, News{Kind: kind, Number: e.Number, At: e.At, Status: after.Status(), Agent: after.Agent,
			Before: before.Agent, ErrorID: after.ErrorID, Parent: after.Created.Parent})
	}
	_, created := e.Payload.(Created)
	switch {
	case created:
		tell(NewsCreated)
	case before.Agent != after.Agent:
		tell(NewsStateChanged)
	}
	if _, asked := e.Payload.(ApprovalAsked); asked {
		tell(NewsNeedsApproval)
	}
	// A session that fails to start has finished even if it had no task: clients may be waiting for it.
	if _, failed := e.Payload.(Failed); failed || before.Busy() && !after.Busy() {
		tell(NewsFinished)
	}
	return list
}

// Busy is true while something is to be done for the person, also if that is paused or waits for an approval.
func (s State) Busy() bool {
	if s.Deleted || s.Stopped || s.Failed {
		return false
	}
	return s.InTurn || s.Pending() || s.Again || s.Replaying() && s.ErrorID == ""
}
