// Package track follows what an agent is doing, from the events of its conversation as a client
// of the API sees them. It knows neither the connection nor the terminal that shows it.
package track

import (
	"encoding/json"
	"fmt"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
	"deckhand/internal/tool"
)

// Agent is what the events so far say about an agent.
type Agent struct {
	State session.AgentState
	Since time.Time
	Cost  session.Money
	// Model is the model of the last call; Used is how many tokens the last call had, and Window how
	// many the model takes, 0 if unknown.
	Model        string
	Used, Window int64
	// Tasks is the agent's task list, empty if it has none.
	Tasks []tool.Item
	// ErrorID says why the last turn failed. Rejected says that a call was rejected without a reason.
	ErrorID  string
	Rejected bool
	// StopReason says why the conversation was stopped, "" if its user stopped it.
	StopReason string
	// Question is true when the last turn ended with a question to the user.
	Question bool
	// Unheard is true when a message came that the agent has perhaps not read.
	Unheard bool
	// Waits is true when a call was shown that waits for approval; Expects when the next event is
	// that call.
	Waits, Expects bool
	// Pausing is true when a pause after the current step was asked for. The caller sets it.
	Pausing bool
	// Queue is the position in the queue for a free slot; its Position is 0 if the agent does not wait for one.
	Queue api.QueuePlace
	// Compacting is true from the user's request to compact the history until the summary replaces it.
	Compacting bool
}

// Remember takes the next event.
func (a *Agent) Remember(p session.Payload) {
	switch p := p.(type) {
	case session.UserSaid:
		a.Unheard = true
	case session.TurnBegan, session.Resumed:
		a.Become(session.AgentRunning)
		a.Unheard, a.Rejected, a.ErrorID = false, false, ""
	case session.Created, session.StartRequested:
		a.Become(session.AgentLoading)
	case session.ApprovalAsked:
		a.Become(session.AgentAwaitingYes)
		a.Expects = !a.Waits
	case session.ApprovalGiven:
		a.Become(session.AgentUserYes)
		switch {
		case p.Approved && p.Late:
			a.Become(session.AgentRunning)
		case !p.Approved:
			a.Become(session.AgentUserNo)
		}
		a.Rejected = !p.Approved && p.Reason == ""
	case session.Paused:
		a.Become(session.AgentPaused)
	case session.Stopped:
		a.Compacting, a.StopReason = false, p.Reason
		a.Become(session.AgentStopped)
	case session.TurnEnded:
		a.Become(p.State)
		a.ErrorID, a.Question = p.ErrorID, p.Reason == session.ReasonQuestion
	case session.Failed:
		a.Compacting = false
		a.Become(session.AgentError)
		a.ErrorID = p.ID
	case session.StateChanged:
		a.Become(p.State)
		a.Expects = p.State == session.AgentAwaitingYes && !a.Waits // the call comes next
	default:
		a.work(p)
	}
	if a.State != session.AgentAwaitingYes {
		a.Waits, a.Expects = false, false
	}
}

// Move takes a new position in the queue, and returns what to tell about it, "" for nothing.
func (a *Agent) Move(p api.QueuePlace) string {
	a.Queue = p
	return p.Message
}

// Queued is a position in the queue in few words.
func Queued(p api.QueuePlace) string { return fmt.Sprintf("queued (%d)", p.Position) }

// work takes an event of a step.
func (a *Agent) work(p session.Payload) {
	switch p := p.(type) {
	case session.ModelAsked:
		if p.Purpose == "" {
			a.Model = p.Model
		}
	case session.ModelAnswered:
		a.Cost = max(a.Cost, p.Totals.Cost)
		if u := p.Usage; p.Purpose == "" {
			a.Used, a.Window = u.Input+u.CacheRead+u.CacheWrite+u.Output, u.Window
		}
	case session.CompactAsked:
		a.Compacting, a.Since = true, time.Now()
	case session.Condensed:
		a.Compacting, a.Used = false, 0
	case session.Noted:
		a.Compacting = a.Compacting && p.ID != session.NoteCompactFailed
	case session.ModelFailed:
		a.Cost = max(a.Cost, p.Totals.Cost)
	case session.ToolCalled:
		a.Cost = max(a.Cost, p.Totals.Cost)
		a.Waits, a.Expects = p.Awaits, false
		a.list(p.Name, p.Args)
	case session.ToolReturned:
		if p.Outcome == session.Succeeded { // the user may have edited the call
			a.list(p.Name, p.Args)
		}
	}
}

// list takes the task list of a call, if it has one.
func (a *Agent) list(name string, args json.RawMessage) {
	if display, view := tool.Show(name, args); display.Content == tool.Checklist && len(view.Items) > 0 {
		a.Tasks = view.Items
	}
}

// Become sets the state.
func (a *Agent) Become(s session.AgentState) {
	if a.State != s {
		a.State, a.Since, a.Pausing = s, time.Now(), false
	}
}

// Working is true while the agent does something by itself.
func (a *Agent) Working() bool {
	switch a.State {
	case session.AgentRunning, session.AgentLoading, session.AgentUserYes, session.AgentUserNo:
		return true
	case session.AgentRateLimited: // it waits to ask again, until it gives up
		return a.ErrorID == "" || a.Compacting
	case session.AgentPaused, session.AgentAwaitingYes:
		return false
	}
	return a.Compacting
}

// Where says what the agent does, and what it has cost.
func (a *Agent) Where() string {
	text, _ := Word(a.State)
	if a.Queue.Position > 0 {
		text = Queued(a.Queue)
	}
	if a.Question && a.State == session.AgentAwaitingUser {
		text = "question"
	}
	if a.State == session.AgentStopped && a.StopReason != "" {
		text += ": " + terminal.Inline(a.StopReason)
	}
	if a.Cost > 0 {
		text += fmt.Sprintf(" · $%.4f", a.Cost.Dollars())
	}
	return text
}

// Word is a state as people say it, in the words of the web page.
func Word(s session.AgentState) (word string, look terminal.Look) {
	switch s {
	case session.AgentRunning, session.AgentUserYes, session.AgentUserNo:
		return "working", terminal.Busy
	case session.AgentLoading:
		return "starting", terminal.Busy
	case session.AgentAwaitingUser:
		return "done", terminal.Good
	case session.AgentAwaitingYes:
		return "needs approval", terminal.Asks
	case session.AgentFinished:
		return "done", terminal.Good
	case session.AgentError:
		return "failed", terminal.Bad
	case session.AgentRateLimited:
		return "rate limited", terminal.Asks
	}
	return string(s), terminal.Plain
}
