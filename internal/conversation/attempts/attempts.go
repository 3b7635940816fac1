// Package attempts implements the use cases for trying one task in several ways. Each attempt is a fork of a conversation
// with its own model, effort or instructions. After each turn of an attempt, the size of its changes is measured and the
// user's test command runs. Finally, the user keeps one attempt.
//
// Attempts are items of a durable queue. If the server is killed at any point, work continues after a restart: a fork is
// created once, its message is sent once, and a test command is started once.
package attempts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"deckhand/internal/conversation"
	"deckhand/internal/queue"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Queue is the name of the attempts queue.
const Queue = "attempts"

const (
	// Max is the maximum number of attempts of a conversation.
	Max = 40
	// minSet and maxSet limit the number of attempts at one task.
	minSet, maxSet = 2, 8
	// atOnce and perUser limit how many attempts are started, measured or tested at the same time, in total and per user.
	atOnce, perUser = 32, 4
	// startTime is how long a request has to start an attempt before the worker starts it.
	startTime = time.Minute
	// maxTries is how often the server tries to start an attempt.
	maxTries = 5
	// TestTime is the timeout of a test command.
	TestTime = 15 * time.Minute
	// maxOutput is how many bytes of a test command's output are kept.
	maxOutput = 8 << 10
)

// Workspaces are the methods of the workspace keeper that attempts use.
type Workspaces interface {
	// Use starts the sandbox of a conversation if needed. Call release afterwards.
	Use(ctx context.Context, id session.ID) (box *sandbox.Sandbox, release func(), err error)
	// View reads a workspace without starting its sandbox.
	View(ctx context.Context, id session.ID) (*workspace.View, error)
}

// Config has the dependencies of a Service.
type Config struct {
	Conversations *conversation.Service
	// Store has the queue. If it is nil, the list of attempts is empty and none can be started.
	Store queue.Store
	// Member is the process that the Service belongs to.
	Member queue.Member
	// Workspaces runs test commands; nil if there are no sandboxes.
	Workspaces Workspaces
	Logger     *slog.Logger
}

// Service implements the use cases. Run must be running for test commands to run.
type Service struct {
	Config
	added chan struct{}

	mu sync.Mutex
	// watched maps the conversations of started attempts to their users. grown has the watched conversations with new
	// events.
	watched map[session.ID]string
	grown   map[session.ID]bool
	// testing has the attempts whose test command is running.
	testing map[session.ID]bool
}

// New returns a Service. Register it as a session.Observer.
func New(c Config) *Service {
	return &Service{Config: c, added: make(chan struct{}, 1), watched: map[session.ID]string{}, grown: map[session.ID]bool{}, testing: map[session.ID]bool{}}
}

// State is the state of an attempt.
type State string

// The states.
const (
	Starting State = "starting" // the fork is being created
	Started  State = "started"
	Failed   State = "failed" // the attempt could not be started
	Kept     State = "kept"
	Deleting State = "deleting" // another attempt was kept
)

// Attempt is one way to do a task.
type Attempt struct {
	Spec
	Progress
	ID    session.ID
	State State
	At    time.Time

	seq   int64
	tries int
	next  time.Time
}

// Spec is what the user asked for. It does not change.
type Spec struct {
	// Set identifies the attempts at the same task. Number is the position in the set, from 1.
	Set    string     `json:"set"`
	Number int        `json:"number"`
	User   string     `json:"user"`
	From   session.ID `json:"from"`
	// Event is the last event of the original to copy, with the files after it; 0 means now.
	Event   int64  `json:"event,omitempty"`
	Trigger string `json:"trigger,omitempty"`
	Title   string `json:"title"`
	Task    string `json:"task"`
	// Test is the test command, "" for none.
	Test  string `json:"test,omitempty"`
	Model string `json:"model,omitempty"`
	// Default is the user's default model at the start, which applies if Model is "".
	Default      string `json:"default_model,omitempty"`
	Effort       string `json:"effort,omitempty"`
	Instructions string `json:"instructions,omitempty"`
}

// Progress is the progress of an attempt so far.
type Progress struct {
	// Problem is the reason why the attempt could not be started.
	Problem string `json:"problem,omitempty"`
	// Turns is the number of finished turns that Worked and Diff cover.
	Turns  int           `json:"turns,omitempty"`
	Worked time.Duration `json:"worked,omitempty"`
	Diff   *Diff         `json:"diff,omitempty"`
	// Runs counts runs of the test command. Running is true from before a run until its result is stored.
	Runs    int  `json:"runs,omitempty"`
	Running bool `json:"running,omitempty"`
	// Tested is the number of finished turns at the last run. Again is true if the user asked for another run.
	Tested int     `json:"tested,omitempty"`
	Again  bool    `json:"again,omitempty"`
	Result *Result `json:"result,omitempty"`
}

// Diff is the size of the changes since the fork.
type Diff struct {
	Files   int `json:"files"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// Result is the result of a run of the test command.
type Result struct {
	// Exit is the exit code; -1 if there is none. Problem is then the reason.
	Exit    int           `json:"exit"`
	Problem string        `json:"problem,omitempty"`
	Output  string        `json:"output,omitempty"`
	Took    time.Duration `json:"took"`
	At      time.Time     `json:"at"`
}

// Passed reports whether the test command succeeded.
func (r Result) Passed() bool { return r.Exit == 0 }
