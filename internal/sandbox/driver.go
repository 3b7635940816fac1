package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"deckhand/internal/sandbox/rpc"
)

// Driver creates sandboxes and finds them again. All methods may be called concurrently,
// also for the same sandbox.
type Driver interface {
	// Start creates the sandbox with spec.ID and returns when its runner can be attached
	// to. An existing workspace with this ID is mounted again. If the sandbox is
	// running, its handle is returned: Start is idempotent, so a server that dies
	// between Start and its log loses nothing. progress may be nil; it must not block.
	// If the sandbox cannot be started, the error is an *Unavailable.
	Start(ctx context.Context, spec Spec, progress func(Progress)) (Handle, error)
	// Attach connects to the runner of a running sandbox, also after a restart of the
	// server. ErrGone if it is not running.
	Attach(ctx context.Context, h Handle) (*Sandbox, error)
	// Stop ends everything that runs in the sandbox and keeps the workspace. It is
	// idempotent, also for a sandbox that does not exist.
	Stop(ctx context.Context, h Handle) error
	// Destroy removes the sandbox with its workspace. It is idempotent.
	Destroy(ctx context.Context, h Handle) error
	// List returns all our sandboxes, running or not, so that unused ones can be found.
	List(ctx context.Context) ([]Found, error)
}

// Viewer is a Driver whose workspaces the server can read directly.
type Viewer interface {
	// View opens the workspace as a folder on this machine, without starting anything.
	// ErrGone if there is none; ErrUnseen if it is elsewhere.
	View(ctx context.Context, h Handle) (*os.Root, error)
}

// LocalViewer is a Viewer whose workspaces are local folders, so that reading one directly is
// cheaper than through the running sandbox.
type LocalViewer interface {
	Viewer
	LocalView()
}

// Inspector is a Driver that can run programs (git) on the workspace of a stopped sandbox
// without starting it.
type Inspector interface {
	// Inspect starts a short-lived sandbox with the same workspace, read-only and
	// without network access. Closing it ends it.
	Inspect(ctx context.Context, h Handle) (*Sandbox, error)
}

// Snapshotter is a Driver that can copy workspaces.
type Snapshotter interface {
	// Snapshot copies the current workspace of h to id, which must not have one yet.
	Snapshot(ctx context.Context, h Handle, id string) error
}

// Archiver is a Driver that can set a workspace aside: out of the way of a new sandbox
// with the same ID, and kept for the operator.
type Archiver interface {
	// SetAside ends the sandbox, moves its workspace to a place where no sandbox is
	// looked for, and returns that place; "" if it was empty. It is idempotent.
	SetAside(ctx context.Context, h Handle) (where string, err error)
}

// Measurer is a Driver that knows the disk usage of a sandbox without asking its runner.
type Measurer interface {
	// Usage returns the size of what the sandbox has written to its workspace and
	// elsewhere.
	Usage(ctx context.Context, h Handle) (Usage, error)
}

// Usage is the disk usage of a sandbox.
type Usage struct {
	Bytes int64
	// Files is the number of files if Bytes was computed from it, because they use a
	// larger share of the disk's inodes than of its bytes. Otherwise it is 0.
	Files int64
}

// Spacer is a Driver that knows the file system of its workspaces.
type Spacer interface {
	// Space returns the free space. It is fast.
	Space() (Space, error)
}

// Holder is a Driver that can freeze a sandbox for a moment.
type Holder interface {
	// Hold freezes all processes in a sandbox, including the runner. They do not notice.
	// It fails if the machine does not support this.
	Hold(ctx context.Context, h Handle) (Held, error)
}

// Held is a frozen sandbox. Call Release or End.
type Held interface {
	// Usage returns the size of what the sandbox has written, as Measurer does, and of
	// deleted files that are still open.
	Usage(ctx context.Context) (files Usage, deleted int64, err error)
	// Release lets all processes continue.
	Release() error
	// End lets only the runner continue while end makes it end everything else.
	End(end func() error) error
}

// Suspender is a Driver whose sandboxes can end and continue later: to what uses them, it
// looks as if they had run all the time.
type Suspender interface {
	// Suspend ends the sandbox to which s is connected, if nothing runs in it, and keeps
	// what Start needs to continue it. Stop ends that, too. If something runs or would be
	// lost, the sandbox stays as it is and the error is ErrInUse. After any other error
	// List tells whether it is running.
	Suspend(ctx context.Context, h Handle, s *Sandbox) error
	// Discard has the next Start of a suspended sandbox begin anew, as after Stop. It does
	// nothing to another.
	Discard(ctx context.Context, h Handle) error
}

// Space is the capacity of a file system and its free space. Inodes are 0 if it does not
// count them.
type Space struct {
	Bytes, FreeBytes   int64
	Inodes, FreeInodes int64
	// Writers is the number of sandboxes in use that write to it; 0 is one.
	Writers int64
}

// Checker is a Driver that can check whether it works on this machine.
type Checker interface {
	// Check tries what Start needs. Each finding says how to fix the problem.
	Check(ctx context.Context) []Finding
}

// Finding is the result of one check.
type Finding struct {
	OK bool
	// Fatal is true if no sandbox can be started because of it.
	Fatal bool
	// What was checked, what was found, and how to fix it.
	What, Found, Fix string
}

// Errors of drivers. They may be wrapped.
var (
	// ErrGone means that the sandbox is not running.
	ErrGone = errors.New("the sandbox is not running")
	// ErrSilent means that the runner runs and did not answer in time.
	ErrSilent = errors.New("the sandbox does not respond")
	// ErrInUse means that something runs in the sandbox.
	ErrInUse = errors.New("the sandbox is in use")
	// ErrUnseen means that the workspace exists, but cannot be read from this machine.
	ErrUnseen = errors.New("the workspace cannot be read from this machine")
	// ErrFenced means that the sandbox has a newer owner.
	ErrFenced = rpc.ErrFenced
	// ErrEscapes means that a path leads out of the workspace.
	ErrEscapes = rpc.ErrEscapes
	// ErrLost means that the connection to the runner was lost; the call may still be
	// running, and its result can be requested by ID after the next Attach.
	ErrLost = rpc.ErrLost
	// ErrChanged means that a file is not what the caller expects.
	ErrChanged = rpc.ErrChanged
	// ErrInvalid means that the request is invalid; ErrBusy that something else is under way; ErrTooBig that something is too
	// large; ErrBinary that a file is not text; ErrNoRepo that a folder is not a git
	// repository.
	ErrInvalid = rpc.ErrInvalid
	ErrBusy    = rpc.ErrBusy
	ErrTooBig  = rpc.ErrTooBig
	ErrBinary  = rpc.ErrBinary
	ErrNoRepo  = rpc.ErrNoRepo
)

// Unavailable says why a sandbox is not available, in words for the user.
type Unavailable struct {
	Reason string
	Cause  error
	// ID is the error code, or "" for the default one.
	ID string
}

// Code returns ID, or the default code.
func (e *Unavailable) Code() string {
	if e.ID == "" {
		return "STATUS$ERROR_RUNTIME_DISCONNECTED"
	}
	return e.ID
}

func (e *Unavailable) Error() string { return e.Reason }
func (e *Unavailable) Unwrap() error { return e.Cause }

// Spec describes a sandbox.
type Spec struct {
	// ID names the sandbox and its workspace; 1 to 100 characters of A-Z a-z 0-9 _ -.
	ID string
	// Image is a container image, or "" for the driver's default. Prepared means that
	// the image already has the runner.
	Image    string
	Prepared bool
	Limits   Limits
	Mounts   []Mount
	// Folder is a folder of this machine to use as the workspace, or "" for one of the
	// driver. Files in it belong to the user of the server. The driver neither measures
	// nor removes it. A driver that does not support it returns an *Unavailable.
	Folder string
	// Env is added to the environment of all processes in the sandbox. It may contain
	// secrets, so drivers ignore it: Open sends it to the runner over the connection,
	// and it is never written to disk.
	Env map[string]string
	// Secrets are the secret values in Env. Before they replace the old ones, Inside is
	// called with all secrets that the sandbox was given since it was started; it may be
	// nil.
	Secrets []string
	Inside  func(values []string)
	// Seal is a 32-byte key with which the runner encrypts results on disk; nil lets it
	// choose a temporary one. Open sends it to the runner over the connection, and it is
	// never written to disk.
	Seal []byte
	// Silence is how long the runner may take to answer when Open attaches to it; 0 is no
	// limit. Drivers ignore it.
	Silence time.Duration
	// Network is the network access.
	Network Network
	// Labels are stored with the sandbox, for operators.
	Labels map[string]string
	// Last is the stored handle of the sandbox; without Data if it was never started. Copied is true if its workspace may be
	// a copy that Snapshot made. A driver with several machines finds the sandbox by these.
	Last   Handle
	Copied bool
}

// CheckID rejects IDs that are not valid names of folders and containers.
func CheckID(id string) error {
	if len(id) < 1 || len(id) > 100 {
		return fmt.Errorf("%w: a sandbox's id has 1 to 100 characters", ErrInvalid)
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return fmt.Errorf("%w: a sandbox's id consists of A-Z a-z 0-9 _ -", ErrInvalid)
		}
	}
	return nil
}

// Limits are the resource limits of a sandbox. 0 is the driver's default, never "no
// limit".
type Limits struct {
	CPUs      float64 `json:"cpus,omitempty"`
	Memory    int64   `json:"memory,omitempty"`    // bytes
	Processes int     `json:"processes,omitempty"` // and threads
	Disk      int64   `json:"disk,omitempty"`      // bytes written to the workspace and beside it
}

// DefaultLimits apply to values that a Spec does not set.
var DefaultLimits = Limits{CPUs: 2, Memory: 4 << 30, Processes: 1024, Disk: 10 << 30}

// OrDefault fills in missing values.
func (l Limits) OrDefault() Limits {
	if l.CPUs <= 0 {
		l.CPUs = DefaultLimits.CPUs
	}
	if l.Memory <= 0 {
		l.Memory = DefaultLimits.Memory
	}
	if l.Processes <= 0 {
		l.Processes = DefaultLimits.Processes
	}
	if l.Disk <= 0 {
		l.Disk = DefaultLimits.Disk
	}
	return l
}

// Mount makes a folder of the host available in the sandbox.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Network is the network access of a sandbox.
type Network string

// A sandbox never has an interface other than loopback.
const (
	// Proxied is loopback with a proxy that Outward serves. The default.
	Proxied Network = ""
	// Isolated is loopback only.
	Isolated Network = "isolated"
)

// PathFirst is the variable of a Spec with a folder below the sandbox's home, as ~/FOLDER, in which
// programs are looked for first.
const PathFirst = "DECKHAND_PATH_FIRST"

// ProxyPort is the port of the proxy on the loopback of a Proxied sandbox.
const ProxyPort = 3128

// BrowserFolder is how the names of folders begin that belong to the agents' browsers.
// Below one, BrowserPort has the port in its first line that its browser is driven by.
const (
	BrowserFolder = "/tmp/deckhand-browser-"
	BrowserPort   = "profile/DevToolsActivePort"
)

// RunnerOwner is the user and group of the runner's folders in a container whose user is root. No process
// inside runs as this user, except connectors that the engine starts for the server.
const RunnerOwner = 65533

// Workspace is the path of the persistent folder inside the sandbox.
const Workspace = "/workspace"

// Handle identifies a sandbox. It is stored in the log as JSON. A handle without Data
// works too, by its ID alone.
type Handle struct {
	Driver string `json:"driver"`
	ID     string `json:"id"`
	// Data is the driver's own.
	Data json.RawMessage `json:"data,omitempty"`
}

// Found is an existing sandbox.
type Found struct {
	Handle  Handle
	Running bool
	// Suspended is true if the sandbox does not run and Start continues it.
	Suspended bool
}

// Progress is a step of a start that takes a noticeable time.
type Progress struct {
	Step Step
	// Message is for users: the image, the percentage.
	Message string
}

// Step is the current step of a start.
type Step string

// The steps, in order.
const (
	Pulling  Step = "pulling"
	Starting Step = "starting"
	Cloning  Step = "cloning"
	SetUp    Step = "setup"
	Hooks    Step = "hooks"
	Ready    Step = "ready"
)

// Missing is the step of a workspace that is on a machine where no server runs.
const Missing Step = "missing"

// Outward serves a connection from the sandbox id to its proxy, made while call was
// running ("" if unknown). It closes the connection.
type Outward func(ctx context.Context, id, call string, conn net.Conn)

// Link is a connection to a runner, with the handlers for its requests.
type Link struct {
	ID      string
	Conn    io.ReadWriteCloser
	Outward Outward
	// OnClose is called once, when the connection has ended.
	OnClose func()
}
