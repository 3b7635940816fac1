package api

import "time"

// StartAttempts is the body of POST …/attempts.
type StartAttempts struct {
	Task        string        `json:"task" required:"true" minLength:"1" maxLength:"1048576" doc:"Task, sent to each attempt as a message."`
	Attempts    []AttemptSpec `json:"attempts" required:"true" minItems:"2" maxItems:"8" doc:"Attempts at the task."`
	TestCommand Opt[string]   `json:"test_command,omitzero" maxLength:"10000" doc:"Shell command that runs in the sandbox of an attempt after its agent finishes. Exit code 0 means passed. It runs in the repository folder, for at most 15 minutes."`
	EventID     Opt[int64]    `json:"event_id,omitzero" minimum:"1" doc:"Event after which the attempts start, with the history and files at that point. null: the newest event and the current files."`
}

// AttemptSpec is one way to do a task.
type AttemptSpec struct {
	Model           Opt[string] `json:"model,omitzero" maxLength:"256" doc:"Model, as provider/model. null: the model of the conversation."`
	ReasoningEffort Opt[string] `json:"reasoning_effort,omitzero" enum:"low,medium,high" doc:"Reasoning effort, for models that support it. null: as in the conversation."`
	Instructions    Opt[string] `json:"instructions,omitzero" maxLength:"100000" doc:"Additional instructions for this attempt, sent with the task."`
}

// Attempts is the response of GET and POST …/attempts.
type Attempts struct {
	Sets []AttemptSet `json:"sets" doc:"Sets of attempts, newest first."`
	// AttemptOf is set for the conversation of an attempt.
	AttemptOf *string `json:"attempt_of" doc:"ID of the conversation that this one is an attempt of; null if it is not an attempt."`
}

// AttemptSet groups the attempts at one task.
type AttemptSet struct {
	ID          string    `json:"id"`
	Task        string    `json:"task"`
	TestCommand *string   `json:"test_command"`
	EventID     *int64    `json:"event_id" doc:"Event after which the attempts started; null: the newest event at that time."`
	CreatedAt   time.Time `json:"created_at"`
	Attempts    []Attempt `json:"attempts" doc:"Attempts in the order of the request. Attempts whose conversation was deleted are omitted."`
}

// Attempt is an attempt at a task, with its results so far.
type Attempt struct {
	ConversationID  string      `json:"conversation_id" doc:"Conversation of the attempt."`
	Number          int         `json:"number" doc:"Number in the set, from 1."`
	State           string      `json:"state" enum:"starting,started,failed,kept" doc:"starting: the conversation is being created. failed: it could not be created. kept: this attempt was chosen."`
	Error           *string     `json:"error" doc:"Why the attempt could not be started."`
	Title           string      `json:"title"`
	Model           string      `json:"model"`
	ReasoningEffort *string     `json:"reasoning_effort"`
	Instructions    *string     `json:"instructions"`
	Status          string      `json:"status" doc:"Status of the conversation: STARTING, RUNNING or STOPPED; empty before it exists."`
	AgentState      string      `json:"agent_state" doc:"Current state of the agent; empty before the conversation exists."`
	ErrorID         *string     `json:"error_id" doc:"Error code if the last turn ended in an error."`
	Reason          *string     `json:"reason" doc:"Error message, or the reason why the conversation was stopped; the word question if the agent waits for a reply."`
	Working         bool        `json:"working" doc:"Whether the agent has work to do, including while it is paused or waits for approval."`
	AccumulatedCost float64     `json:"accumulated_cost" doc:"Cost of the attempt in US dollars."`
	SecondsWorked   float64     `json:"seconds_worked" doc:"Duration of the attempt's turns in seconds, excluding pauses and pending approvals."`
	Diff            *DiffSize   `json:"diff,omitzero" doc:"Size of the changes since the start of the attempt. Omitted while the agent is working or if the size is unknown."`
	Test            *TestResult `json:"test,omitzero" doc:"Result of the test command. Omitted if there is no test command."`
}

// DiffSize is the size of changes.
type DiffSize struct {
	Files   int `json:"files" doc:"Number of changed files."`
	Added   int `json:"added" doc:"Number of added lines."`
	Removed int `json:"removed" doc:"Number of removed lines."`
}

// TestResult is the result of a test command.
type TestResult struct {
	State    string     `json:"state" enum:"waiting,running,passed,failed" doc:"waiting: the test command runs after the agent finishes."`
	ExitCode *int       `json:"exit_code" doc:"Exit code; null if the command did not run to completion."`
	Problem  *string    `json:"problem" doc:"Why there is no exit code."`
	Output   string     `json:"output" doc:"Last part of the output."`
	Seconds  float64    `json:"seconds" doc:"Duration of the command in seconds."`
	At       *time.Time `json:"at" doc:"Time of the result."`
}

// KeptAttempt is the response of POST …/attempts/{attempt_id}/keep.
type KeptAttempt struct {
	ConversationID string   `json:"conversation_id" doc:"Conversation that was kept."`
	Deleted        []string `json:"deleted" doc:"Conversations that were deleted."`
}
