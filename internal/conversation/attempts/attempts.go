// Package attempts has the use cases for trying one task in several ways: each attempt is a fork of a conversation with
// its own model, effort or instructions. When the turn of an attempt ends, the size of its changes is measured and the
// user's test command is run; in the end the user keeps one.
//
// Attempts are items of a durable queue. A server that is killed at any point continues where it was: a fork is made
// once, its message is sent once, and a test command is started once.
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

// Queue is the name of the queue of attempts.
const Queue = "attempts"

const (
	// Max is how many attempts a conversation has at most.
	Max = 40
	// minSet and maxSet are how many attempts at one task there may be.
	minSet, maxSet = 2, 8
	// atOnce is how many attempts are started, measured or tested at the same time, perUser how many of one user.
	atOnce, perUser = 32, 4
	// startTime is how long a request has to start an attempt before the worker does it.
	startTime = time.Minute
	// maxTries is how often an attempt is started if the server fails to.
	maxTries = 5
	// TestTime is how long a test command may take.
	TestTime = 15 * time.Minute
	// maxOutput is how many bytes of the end of a test command's output are kept.
	maxOutput = 8 << 10
)

// Workspaces is what attempts need of the workspace keeper.
type Workspaces interface {
	// Use starts the sandbox of a conversation if needed. Call release afterwards.
	Use(ctx context.Context, id session.ID) (box *sandbox.Sandbox, release func(), err error)
	// View reads a workspace without starting its sandbox.
	View(ctx context.Context, id session.ID) (*workspace.View, error)
}

// Config is what a Service needs.
type Config struct {
	Conversations *conversation.Service
	// Store has the queue; nil if there are no attempts to list, and none are started.
	Store queue.Store
	// Member is the process that the Service belongs to.
	Member queue.Member
	// Workspaces runs test commands; nil if there are no sandboxes.
	Workspaces Workspaces
	Logger     *slog.Logger
}

// Service carries out the use cases. Run must be running for tests to be run.
type Service struct {
	Config
	added chan struct{}

	mu sync.Mutex
	// watched are the conversations of started attempts with their users, and grown those of them in which something
	// happened.
	watched map[session.ID]string
	grown   map[session.ID]bool
}

// New makes a Service. It must observe sessions: see session.Observer.
func New(c Config) *Service {
	return &Service{Config: c, added: make(chan struct{}, 1), watched: map[session.ID]string{}, grown: map[session.ID]bool{}}
}

// State is how far an attempt is.
type State string

// The states.
const (
	Starting State = "starting" // the fork is being made
	Started  State = "started"
	Failed   State = "failed" // it could not be started
	Kept     State = "kept"
	Deleting State = "deleting" // another one was kept
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
	// Set is what attempts at the same task share, Number the place among them, from 1.
	Set    string     `json:"set"`
	Number int        `json:"number"`
	User   string     `json:"user"`
	From   session.ID `json:"from"`
	// Event is the last event of the original that is copied, with the files after it; 0 means now.
	Event   int64  `json:"event,omitempty"`
	Trigger string `json:"trigger,omitempty"`
	Title   string `json:"title"`
	Task    string `json:"task"`
	// Test is the test command, "" for none.
	Test         string `json:"test,omitempty"`
	Model        string `json:"model,omitempty"`
	Effort       string `json:"effort,omitempty"`
	Instructions string `json:"instructions,omitempty"`
}

// Progress is what became of an attempt so far.
type Progress struct {
	// Problem says why the attempt could not be started.
	Problem string `json:"problem,omitempty"`
	// Turns is the number of finished turns that Worked and Diff are about.
	Turns  int           `json:"turns,omitempty"`
	Worked time.Duration `json:"worked,omitempty"`
	Diff   *Diff         `json:"diff,omitempty"`
	// Runs counts runs of the test command. Running is true from before a run until its result is stored.
	Runs    int  `json:"runs,omitempty"`
	Running bool `json:"running,omitempty"`
	// Tested is the number of finished turns at the last run, Again true if the user wants another one.
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
	// Exit is the exit code; -1 if there is none, and then Problem says why.
	Exit    int           `json:"exit"`
	Problem string        `json:"problem,omitempty"`
	Output  string        `json:"output,omitempty"`
	Took    time.Duration `json:"took"`
	At      time.Time     `json:"at"`
}

// Passed is true for a test command that succeeded.
func (r Result) Passed() bool { return r.Exit == 0 }
