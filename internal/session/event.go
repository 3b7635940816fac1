package session

import (
	"encoding/json"
	"time"
)

// Event is one fact of a session's log.
type Event struct {
	// Number is 1 for the first event and grows by one; it is also the id that clients see.
	Number int64
	// At is when the fact was recorded, in UTC with microseconds.
	At      time.Time
	Payload Payload
}

// Payload is what happened. The set is closed: every kind is in this file, in kinds (codec.go) and in docs/events.md.
type Payload interface{ Kind() Kind }

// Kind names a payload in storage. Names never change; payloads only gain fields.
type Kind string

// Created opens every log. What the person asked for survives every resume.
type Created struct {
	Owner      string `json:"owner"`
	Trigger    string `json:"trigger,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Provider   string `json:"provider,omitempty"`
	// Address is where the repository is cloned from, if no provider says it.
	Address      string `json:"address,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	// MCP is the conversation's own tool servers, sealed by the API: it may hold keys.
	MCP []byte `json:"mcp,omitempty"`
	// Replay is the recorded trajectory to run first, as it was sent.
	Replay string `json:"replay,omitempty"`
	// Then is the message to be delivered after the replay.
	Then *UserSaid `json:"then,omitempty"`
	// Fingerprint recognises the same request sent again.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Parent is the session whose agent asked for this one; Agent is the profile it asked for, and Grant the money it gave, if Granted.
	Parent  ID     `json:"parent,omitempty"`
	Depth   int    `json:"depth,omitempty"` // how many parents it has
	Agent   string `json:"agent,omitempty"`
	Grant   Money  `json:"grant,omitempty"`
	Granted bool   `json:"granted,omitempty"`
	// Before is what the conversation had cost where it was taken over from.
	Before Totals `json:"before,omitzero"`
	// Forked is set for a copy of another session.
	Forked  *Forked `json:"forked,omitempty"`
	Machine string  `json:"machine,omitempty"` // where the workspace of an import was filled, if there are several machines
	// Outside is why nothing of the repository runs without approval, even in a trusted one: the session was started by a user without write access, or for a branch of a fork.
	Outside Outside `json:"outside,omitempty"`
	// Trusted says that the person trusts the repository.
	Trusted bool `json:"trusted,omitempty"`
}

// Outside is what outsiders have to do with a session.
type Outside string

// The ways.
const (
	OutsideActor Outside = "actor" // started by a user without write access
	OutsideFork  Outside = "fork"  // about a pull request from a fork
)

// Forked says of what a session is a copy.
type Forked struct {
	From ID `json:"from"`
	// Number is the last event of the copy: what follows happened here.
	Number int64 `json:"number"`
	// At is when the copy was made. The events in it keep their own times.
	At time.Time `json:"at"`
}

// UserSaid is a message of the person; it is queued by being here.
type UserSaid struct {
	Text   string   `json:"text"`
	Images []string `json:"images,omitempty"`
	Files  []string `json:"files,omitempty"`
	// Key recognises a second delivery of the same message; empty if the sender gave none. Automated says that no person sent it.
	Key       string `json:"key,omitempty"`
	Automated bool   `json:"automated,omitempty"`
}

// Withdrawn takes messages back that the model was not shown. An edited or moved message is withdrawn and said again.
type Withdrawn struct {
	Messages []int64 `json:"messages"`
}

// Claimed gives the session to one loop. Its number is the fence: a loop with an older number can neither append nor command the runner.
type Claimed struct {
	By string `json:"by"`
}

// WorkspaceReady says the workspace can be used, and how to find it again.
type WorkspaceReady struct {
	Handle json.RawMessage `json:"handle,omitempty"`
}

// WorkspaceStep says how far the workspace is: pulling its image, starting, cloning, set-up. WorkspaceReady or Failed ends the steps.
type WorkspaceStep struct {
	Step    string `json:"step"`
	Message string `json:"message,omitempty"`
}

// CheckedOut says that the repository is in the workspace.
type CheckedOut struct {
	Repository string `json:"repository"`
	Provider   string `json:"provider,omitempty"`
	// Branch is the one that is checked out. Fresh says that it was made for this work.
	Branch string `json:"branch"`
	Fresh  bool   `json:"fresh,omitempty"`
	// Commit is where the work begins, "" in an empty repository.
	Commit string `json:"commit,omitempty"`
	// Dir is the folder as it is called in the sandbox, Folder as seen from the workspace.
	Dir    string `json:"dir"`
	Folder string `json:"folder"`
	// Script is what the repository wants to be run before the work, "" for nothing.
	Script string `json:"script,omitempty"`
	// Hook is the script of the repository to be run before each commit, "" for none.
	Hook string `json:"hook,omitempty"`
	// Notes are what went wrong beside it: a submodule that could not be had.
	Notes []string `json:"notes,omitempty"`
}

// SetUp is how the repository's own script for setting up ended.
type SetUp struct {
	Script string `json:"script"`
	// Exit is its exit code; -1 if it did not end by itself, and then Problem says why.
	Exit    int    `json:"exit"`
	Output  string `json:"output,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// EgressSet is how the conversation may reach the network from now on; the server's own policy holds beside it, and the stricter one wins.
type EgressSet struct {
	Mode  string   `json:"mode"`
	Allow []string `json:"allow,omitempty"`
}

// Overridden is with which model the conversation goes on, and what it may spend,
// in place of what the settings say. It counts from the next model call on.
type Overridden struct {
	Model  string `json:"model,omitempty"`  // "" is that of the settings
	Effort string `json:"effort,omitempty"` // low, medium or high; "" is the provider's default
	// Budget is the limit, if Limited. Otherwise the one of the settings holds.
	Budget  Money `json:"budget,omitempty"`
	Limited bool  `json:"limited,omitempty"`
	// Plan makes the agent read-only: it plans, and changes nothing until Plan is false again.
	Plan bool `json:"plan,omitempty"`
	// Approval is when the agent asks before calls: always, risky or never; "" is as in the settings.
	Approval string `json:"approval,omitempty"`
}

// Briefed records what the model is told before anything else.
type Briefed struct {
	Prompt string          `json:"prompt"`
	Tools  json.RawMessage `json:"tools,omitempty"`
	Agent  string          `json:"agent"`
	Model  string          `json:"model"`
}

// RecallAsked says that what the agent should know about a message is looked up. Recalled is the result. Legacy clients hide an action that has a
// result, so the result must belong to this event and not to the message.
type RecallAsked struct {
	// Of is the number of the message.
	Of int64 `json:"of"`
	// Type is "workspace_context" for the first message and "knowledge" for later ones.
	Type string `json:"type"`
	// Query is the beginning of the message.
	Query string `json:"query,omitempty"`
}

// Recalled is what the agent is told beside a message: about the workspace, and what it should know when such words fall.
type Recalled struct {
	// Of is the number of the message.
	Of   int64  `json:"of"`
	Text string `json:"text"`
	// Asked is the number of the RecallAsked; 0 in logs of older versions.
	Asked int64 `json:"asked,omitempty"`
	// Items are the pieces of knowledge that were found by their triggers.
	Items []Knowledge `json:"items,omitempty"`
	// Details are for clients: what the text says about the workspace.
	Details json.RawMessage `json:"details,omitempty"`
}

// Knowledge is something the agent should know when a word falls.
type Knowledge struct {
	Name    string `json:"name"`
	Trigger string `json:"trigger,omitempty"`
	Content string `json:"content,omitempty"`
}

// Nudged is a word of the loop's to the model: that it goes round in circles, or that its answer was cut.
type Nudged struct {
	Rule string `json:"rule"`
	Text string `json:"text"`
}

// Replayed says how far the recorded trajectory was run.
type Replayed struct {
	Next int `json:"next"`
	// Done is true when nothing of it is left.
	Done bool `json:"done,omitempty"`
}

// Granted sets money aside for a session that the agent asked for.
type Granted struct {
	Child  ID    `json:"child"`
	Amount Money `json:"amount"`
}

// Settled says what such a session spent; the rest of its grant is free again.
type Settled struct {
	Child  ID     `json:"child"`
	Cost   Money  `json:"cost"`
	Totals Totals `json:"totals"`
}

// Capped limits what a session may ever spend, in place of its grant.
type Capped struct {
	Limit Money `json:"limit"`
}

// TurnBegan says the agent took up work.
type TurnBegan struct{}

// ModelAsked precedes a model call: the money is reserved before it is spent.
type ModelAsked struct {
	Call     string `json:"call"`
	Model    string `json:"model"`
	Reserved Money  `json:"reserved,omitempty"`
	// UpTo is the last event the model was shown.
	UpTo int64 `json:"up_to"`
	// Purpose is "" for a step of the agent, or what else it is for: a summary or a title.
	Purpose string `json:"purpose,omitempty"`
}

// ForSummary is the purpose of a call that summarises old history.
const ForSummary = "summary"

// ForTitle is the purpose of a call that names the conversation. It is made after a turn.
const ForTitle = "title"

// ModelAnswered settles a model call.
type ModelAnswered struct {
	Call      string     `json:"call"`
	Text      string     `json:"text,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	Usage     Usage      `json:"usage"`
	Cost      Money      `json:"cost,omitempty"`
	// Final is true when the agent now waits for the person.
	Final bool `json:"final,omitempty"`
	// Totals are the session's sums including this call.
	Totals Totals `json:"totals"`
	// Raw is what the provider needs to see again (signatures, ids), opaque to us.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Purpose is that of the call; only an answer without one is a step of the agent.
	Purpose string `json:"purpose,omitempty"`
	// Cut says that the answer reached the limit on its length.
	Cut bool `json:"cut,omitempty"`
}

// ModelFailed settles a model call that gave no answer: it failed, was cancelled, or was lost with its owner.
type ModelFailed struct {
	Call    string `json:"call"`
	Class   string `json:"class"`
	Message string `json:"message,omitempty"`
	// Cost is what the call must be taken to have cost.
	Cost   Money  `json:"cost,omitempty"`
	Totals Totals `json:"totals"`
	// Retried says that the call is made again, so that it does not count as one.
	Retried bool `json:"retried,omitempty"`
	// Text is what the model had written when the call was interrupted. It is for people: the model is not shown it.
	Text string `json:"text,omitempty"`
}

// ToolCall is one call as the model wrote it.
type ToolCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// ToolCalled says a tool starts to run (or waits for approval to).
type ToolCalled struct {
	ToolCall
	Thought string `json:"thought,omitempty"`
	Risk    Risk   `json:"risk"`
	// Answer is the number of the ModelAnswered that asked for it.
	Answer int64  `json:"answer"`
	Totals Totals `json:"totals"`
	// Usage is that answer's, so that a call tells how full the model's window is.
	Usage Usage `json:"usage,omitzero"`
	// InAnswer is how many calls that answer made.
	InAnswer int `json:"in_answer,omitempty"`
	// Awaits says that the person is asked about it first.
	Awaits bool `json:"awaits,omitempty"`
	// Origin is who wants it: "" for the model.
	Origin Origin `json:"origin,omitempty"`
}

// Origin is who wants a call to be made.
type Origin string

// OriginSetUp is for scripts of the repository that the person is asked about. The model is shown neither the call nor its result.
const OriginSetUp Origin = "set_up"

// ToolReturned is the one result of a ToolCalled.
type ToolReturned struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Cause is the number of the ToolCalled.
	Cause   int64   `json:"cause"`
	Outcome Outcome `json:"outcome"`
	Output  string  `json:"output,omitempty"`
	// Details are what a tool says beside its text (exit code, diff, …).
	Details json.RawMessage `json:"details,omitempty"`
	// Args repeats the call's, so that one event tells the whole result.
	Args json.RawMessage `json:"args,omitempty"`
	// Images are data: URLs that belong to the result.
	Images []string `json:"images,omitempty"`
	// Ends says that with this the agent considers its task done.
	Ends bool `json:"ends,omitempty"`
	// Partial says that the call was interrupted or lost, and Output is what it had written.
	Partial bool `json:"partial,omitempty"`
	// Origin is that of the call.
	Origin Origin `json:"origin,omitempty"`
}

// CommandTyped says that a person runs a command of their own in the conversation's
// shell. The model is not asked; the loop runs the command between two steps.
type CommandTyped struct {
	Command string `json:"command"`
}

// CommandEnded is the one result of a CommandTyped.
type CommandEnded struct {
	// Cause is the number of the CommandTyped, Command repeats its text.
	Cause   int64   `json:"cause"`
	Command string  `json:"command"`
	Outcome Outcome `json:"outcome"`
	Output  string  `json:"output,omitempty"`
	// Details are those of the shell tool (exit code, folder, …).
	Details json.RawMessage `json:"details,omitempty"`
}

// ApprovalAsked says a call waits for the person.
type ApprovalAsked struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
	// Pattern is what "always" would mean here, "" if it cannot be said safely.
	Pattern string `json:"pattern,omitempty"`
	// Deadline is when Default becomes the answer; none if it is zero.
	Deadline time.Time `json:"deadline,omitzero"`
	Default  bool      `json:"default,omitempty"`
	// Told says that a StateChanged before the call told clients that it waits.
	Told bool `json:"told,omitempty"`
}

// ApprovalGiven is the answer, yes or no.
type ApprovalGiven struct {
	ID       string `json:"id"`
	Approved bool   `json:"approved"`
	// Reason is told to the model; with one, the agent goes on after a no.
	Reason string `json:"reason,omitempty"`
	// Args replace those of the call.
	Args json.RawMessage `json:"args,omitempty"`
	// Always is a pattern: calls that match it are not asked about any more.
	Always string `json:"always,omitempty"`
	// Late is true if there was no decision before the deadline.
	Late bool `json:"late,omitempty"`
}

// Condensed replaces the events From..To by a summary in the model's view.
type Condensed struct {
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Summary string `json:"summary"`
}

// StateChanged is a change of the agent's state that no other fact implies.
type StateChanged struct {
	State  AgentState `json:"state"`
	Reason string     `json:"reason,omitempty"`
}

// ReasonQuestion is the reason of a turn that ended with a question to the user.
const ReasonQuestion = "question"

// TurnEnded says the agent has nothing more to do about the events up to UpTo. A message with a higher number arrived while the model was being
// called and is still to be answered.
type TurnEnded struct {
	UpTo  int64      `json:"up_to"`
	State AgentState `json:"state"`
	// ErrorID and Reason say why, when State is error.
	ErrorID string `json:"error_id,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// PauseRequested asks the agent to pause after the step in progress.
type PauseRequested struct{}

// Paused stops the agent between two steps; the turn goes on at Resumed or at the next message.
type Paused struct {
	// AfterStep says that nothing was interrupted: the calls of the last answer that were not started are started when the turn goes on.
	AfterStep bool `json:"after_step,omitempty"`
}

// Resumed ends a pause, or takes up a turn again that ended in an error.
type Resumed struct{}

// Stopped closes the session until it is started again.
type Stopped struct {
	Reason string `json:"reason,omitempty"`
}

// StartRequested opens a stopped or failed session again.
type StartRequested struct{}

// Failed says the session could not be started, and why.
type Failed struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Titled names the conversation.
type Titled struct {
	Title string `json:"title"`
	// ByUser is true for a name a person gave; the agent does not replace it.
	ByUser bool `json:"by_user,omitempty"`
}

// RequestOpened says that a pull request belongs to the conversation: it was opened in it, or found to be open when that was tried.
type RequestOpened struct {
	Provider   string `json:"provider"` // as in the settings: github, gitlab, …
	Repository string `json:"repository"`
	Number     int    `json:"number"`
	URL        string `json:"url,omitempty"`
	Title      string `json:"title,omitempty"`
	// Source and Target are its branches.
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
}

// Noted is something people should be told that changes nothing: a retry, a tool server that did not answer.
type Noted struct {
	ID      string `json:"id"`
	Message string `json:"message"`
	Error   bool   `json:"error,omitempty"`
	// Retry is the number of a retry of a model call, of at most Retries. It starts at RetryAt.
	Retry   int       `json:"retry,omitempty"`
	Retries int       `json:"retries,omitempty"`
	RetryAt time.Time `json:"retry_at,omitzero"`
}

// Imported is an event of another server's, from which the conversation was taken over. Event is what clients are shown of it. The others, of which
// at most one is set, are what it means to the model, in our own words.
type Imported struct {
	// Event is the event in the dialect of the legacy server, without what is said
	// here: its number, its time and its cause, which is the number of another event.
	Event json.RawMessage `json:"event,omitempty"`
	Cause int64           `json:"cause,omitempty"`

	Said      *UserSaid      `json:"said,omitempty"`
	Answered  *ModelAnswered `json:"answered,omitempty"`
	Returned  *ToolReturned  `json:"returned,omitempty"`
	Told      *Nudged        `json:"told,omitempty"`
	Condensed *Condensed     `json:"condensed,omitempty"`
}

// Deleted ends the log permanently. Stores drop what came before it.
type Deleted struct{}
