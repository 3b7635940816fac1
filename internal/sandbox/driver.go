package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"deckhand/internal/sandbox/rpc"
)

// Driver makes sandboxes and finds them again. All methods may be called
// concurrently, also for the same sandbox.
type Driver interface {
	// Start makes the sandbox that spec.ID names and returns once its runner can
	// be attached to. A workspace that exists under this ID is mounted again. If
	// the sandbox runs already, its handle is returned: Start twice is Start
	// once, so that a server that died between Start and its log loses nothing.
	// The progress function may be nil; it must not block.
	// A place that cannot be had is an *Unavailable.
	Start(ctx context.Context, spec Spec, progress func(Progress)) (Handle, error)
	// Attach connects to the runner of a sandbox that runs, also after a restart
	// of ours. ErrGone if it does not run.
	Attach(ctx context.Context, h Handle) (*Sandbox, error)
	// Stop ends everything that runs in the sandbox and keeps the workspace. It
	// is idempotent; what does not exist is stopped.
	Stop(ctx context.Context, h Handle) error
	// Destroy removes the sandbox with its workspace. It is idempotent.
	Destroy(ctx context.Context, h Handle) error
	// List names everything of ours that exists, running or not, so that what
	// nobody needs any more can be found.
	List(ctx context.Context) ([]Found, error)
}

// Viewer is a Driver whose workspaces the server can look into by itself.
type Viewer interface {
	// View opens the workspace as a folder on this machine, without starting
	// anything. ErrGone if there is none; ErrUnseen if it lies elsewhere.
	View(ctx context.Context, h Handle) (*os.Root, error)
}

// Near is a Viewer whose workspaces are folders of this machine, so that looking
// into one costs less than asking the sandbox that runs on it.
type Near interface {
	Viewer
	Near()
}

// Inspector is a Driver that can look at the workspace of a stopped sandbox
// with programs (git), without waking it.
type Inspector interface {
	// Inspect starts a short-lived sandbox over the same workspace, which it can
	// read and not change, without a way out. Closing it ends it.
	Inspect(ctx context.Context, h Handle) (*Sandbox, error)
}

// Snapshotter is a Driver that can copy workspaces.
type Snapshotter interface {
	// Snapshot makes the workspace of id a copy of h's as it is now. id must not
	// have one yet.
	Snapshot(ctx context.Context, h Handle, id string) error
}

// Shelver is a Driver that can set a workspace aside: out of the way of a new
// sandbox with the same ID, and kept for a person who decides about it.
type Shelver interface {
	// SetAside ends the sandbox and moves its workspace to where no sandbox is
	// found, and says where that is; "" if there was nothing in it. What does not
	// exist is set aside.
	SetAside(ctx context.Context, h Handle) (where string, err error)
}

// Measurer is a Driver that knows what a sandbox takes up on disk without
// asking the sandbox.
type Measurer interface {
	// Usage counts what the sandbox has written to its workspace and beside it.
	Usage(ctx context.Context, h Handle) (Usage, error)
}

// Usage is what a sandbox takes up on disk.
type Usage struct {
	Bytes int64
	// Files is the number of files if Bytes is their part of the disk, because they are
	// a larger part of the files that it can have than of its bytes. Otherwise it is 0.
	Files int64
}

// Spacer is a Driver that keeps workspaces on a file system that it can ask.
type Spacer interface {
	// Space says what is left there. It is fast.
	Space() (Space, error)
}

// Holder is a Driver that can keep a sandbox from doing anything for a moment.
type Holder interface {
	// Hold stops all processes in a sandbox, and the runner with them. They do not
	// notice. An error says that this cannot be done here.
	Hold(ctx context.Context, h Handle) (Held, error)
}

// Held is a sandbox that is held. Call Release or End.
type Held interface {
	// Usage counts what the sandbox has written, as Measurer does, and what deleted
	// files that are open take up.
	Usage(ctx context.Context) (files Usage, deleted int64, err error)
	// Release lets everything go on.
	Release() error
	// End lets only the runner go on while end has it end everything else.
	End(end func() error) error
}

// Space is what a file system has and what is left of it. A file system that does
// not count its inodes has 0 of them.
type Space struct {
	Bytes, FreeBytes   int64
	Inodes, FreeInodes int64
}

// Checker is a Driver that can say whether it would work here.
type Checker interface {
	// Check tries what Start needs. Problems are in plain words, each with what
	// to do about it.
	Check(ctx context.Context) []Finding
}

// Finding is one thing a driver says about the machine it runs on.
type Finding struct {
	OK bool
	// Fatal is true when no sandbox can be started because of it.
	Fatal bool
	// What was looked at, what was found, and what to do about it.
	What, Found, Fix string
}

// The errors a driver answers with. They may be wrapped.
var (
	// ErrGone says the sandbox does not run.
	ErrGone = errors.New("the sandbox is not running")
	// ErrUnseen says the workspace exists but cannot be seen from here.
	ErrUnseen = errors.New("the workspace cannot be read from this machine")
	// ErrFenced says a newer owner commands the sandbox.
	ErrFenced = rpc.ErrFenced
	// ErrEscapes says a path leads out of the workspace.
	ErrEscapes = rpc.ErrEscapes
	// ErrLost says the connection to the runner ended; what was called may still
	// run, and can be asked for again by its id after the next Attach.
	ErrLost = rpc.ErrLost
	// ErrChanged says a file is not what the caller takes it for.
	ErrChanged = rpc.ErrChanged
	// ErrInvalid says the request makes no sense; ErrTooBig that something is
	// larger than it may be; ErrBinary that a file is not a text; ErrNoRepo that
	// a folder is not a git repository.
	ErrInvalid = rpc.ErrInvalid
	ErrTooBig  = rpc.ErrTooBig
	ErrBinary  = rpc.ErrBinary
	ErrNoRepo  = rpc.ErrNoRepo
)

// Unavailable says why a sandbox cannot be had, in words for the person whose
// conversation it is.
type Unavailable struct {
	Reason string
	Cause  error
	// ID is the code of the reason for programs, "" for that of a sandbox that is
	// not there.
	ID string
}

// Code is the ID, or that of a sandbox that is not there.
func (e *Unavailable) Code() string {
	if e.ID == "" {
		return "STATUS$ERROR_RUNTIME_DISCONNECTED"
	}
	return e.ID
}

func (e *Unavailable) Error() string { return e.Reason }
func (e *Unavailable) Unwrap() error { return e.Cause }

// Spec says what a sandbox shall be.
type Spec struct {
	// ID names the sandbox and its workspace; 1 to 100 characters of A-Z a-z 0-9 _ -.
	ID string
	// Image is a container image, "" for the driver's own. Prepared says that the
	// image holds the runner already.
	Image    string
	Prepared bool
	Limits   Limits
	Mounts   []Mount
	// Folder is a folder of this machine that is the workspace, "" for one that
	// the driver keeps. What is written there belongs to our own user. It is not
	// the driver's: its size is not counted, and it is never removed. A driver
	// that cannot show it is *Unavailable.
	Folder string
	// Env is added to the environment of everything that runs inside. It may hold
	// secrets, so drivers ignore it: Open gives it to the runner over the
	// connection, and it is never written down.
	Env map[string]string
	// Secrets are the values of Env that are secret. Inside is told all that the sandbox
	// was given since it was started, before these take their place; it may be nil.
	Secrets []string
	Inside  func(values []string)
	// Seal is a key of 32 bytes under which the runner seals the results that it keeps
	// on disk; nil lets it choose one that ends with it. Open gives it to the runner
	// over the connection, and it is never written down.
	Seal []byte
	// Network says what is out there.
	Network Network
	// Labels are kept with the sandbox, for people who look at the engine.
	Labels map[string]string
}

// CheckID refuses what could not name a folder or a container.
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

// Limits bound what a sandbox may use. 0 is the driver's default, never "no limit".
type Limits struct {
	CPUs      float64 `json:"cpus,omitempty"`
	Memory    int64   `json:"memory,omitempty"`    // bytes
	Processes int     `json:"processes,omitempty"` // and threads
	Disk      int64   `json:"disk,omitempty"`      // bytes written to the workspace and beside it
}

// DefaultLimits hold for whatever a Spec leaves open.
var DefaultLimits = Limits{CPUs: 2, Memory: 4 << 30, Processes: 1024, Disk: 10 << 30}

// OrDefault fills what is open.
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

// Mount shows a folder of the host inside.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Network is a sandbox's view of the world.
type Network string

// A sandbox never has an interface but loopback.
const (
	// Proxied is loopback with a proxy on it that Outward answers. The default.
	Proxied Network = ""
	// Isolated is loopback alone.
	Isolated Network = "isolated"
)

// ProxyPort is where a Proxied sandbox finds the proxy, on its own loopback.
const ProxyPort = 3128

// BrowserFolder is how the names of folders begin that belong to the agents' browsers.
// Below one, BrowserPort has the port in its first line that its browser is driven by.
const (
	BrowserFolder = "/tmp/deckhand-browser-"
	BrowserPort   = "profile/DevToolsActivePort"
)

// Workspace is the folder that is kept, as it is called inside.
const Workspace = "/workspace"

// Handle finds a sandbox again. It goes into the log as JSON. A handle without
// Data finds it as well, by its ID alone.
type Handle struct {
	Driver string `json:"driver"`
	ID     string `json:"id"`
	// Data is the driver's own.
	Data json.RawMessage `json:"data,omitempty"`
}

// Found is a sandbox that exists.
type Found struct {
	Handle  Handle
	Running bool
}

// Progress is a step of a start that takes long enough to be told about.
type Progress struct {
	Step Step
	// Message is for people: which image, how much of it.
	Message string
}

// Step is where a start stands.
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

// Outward is the way out: it serves one connection that something in the
// sandbox id made to its proxy, while call ran ("" if nobody knows). It closes
// the connection.
type Outward func(ctx context.Context, id, call string, conn net.Conn)

// Link is a connection to a runner, and who answers what it asks for.
type Link struct {
	ID      string
	Conn    io.ReadWriteCloser
	Outward Outward
	// OnClose is called once, when the connection has ended.
	OnClose func()
}
