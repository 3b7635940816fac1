package box

// The descriptors the driver starts the runner with.
const (
	ControlFD = 3 // a socket: one Setup comes in, one Report goes out
	ListenFD  = 4 // the listening socket of the runner
	ProgramFD = 5 // the runner's program, which is executed by this descriptor
)

// MaxMessage bounds a Setup and a Report.
const MaxMessage = 128 << 10

// Names of the folders of a sandbox in its own directory on the host.
const (
	WorkDir   = "ws"     // the workspace
	HomeDir   = "home"   // the home of the user inside
	UpDir     = "up"     // what was changed in the system
	TmpDir    = "tmp"    // wiped at every start
	StateDir  = "state"  // the runner's own
	OutputDir = "output" // long outputs, which the inside may read
)

// Written are the folders that count towards the disk limit. The runner's own files are bounded,
// and cannot be deleted from inside.
var Written = []string{WorkDir, HomeDir, UpDir, TmpDir}

// TmpDirs are the folders in TmpDir and where they are seen.
// In some systems, /tmp is a link to /var/tmp, which therefore comes first.
var TmpDirs = []struct {
	Name, Target string
	Mode         uint32
}{{"vartmp", "/var/tmp", 0o1777}, {"tmp", "/tmp", 0o1777}, {"run", "/run", 0o755}}

// Where things are seen inside.
const (
	Workspace = "/workspace"
	Home      = "/root"
	Output    = "/.deckhand/output"
	Hostname  = "deckhand"
)

// Setup is what the driver tells the runner about the sandbox to build. File
// descriptors travel with it; the fields called Tree are their numbers in the
// order they were sent, from 1, with 0 for none.
type Setup struct {
	ID string
	// Box is the sandbox's directory on the host: a mount of it, or its path.
	Box     string
	BoxTree int
	// Work is the same for the workspace, when that is not the one in Box.
	Work         string
	WorkTree     int
	WorkReadOnly bool

	// Root is what the tree inside is made of, and Layers what is put on it.
	Root   Layer
	Layers []Layer
	// Plain says that the folder in UpDir is the root itself, because no overlay can be had.
	Plain bool
	// Mapped means that the kernel can mount an overlay over folders with mapped owners, so that no fallback is prepared.
	Mapped bool
	// Masked are files and folders of the host that stay unseen.
	Masked []string
	Mounts []Mount

	// Network is a sandbox.Network.
	Network string
	// Env is what the server will set, so that a first shell can be started ahead.
	Env map[string]string
	// Tether ends the sandbox with the control connection.
	Tether bool

	// FileSize, Processes and Data become resource limits, unless 0.
	FileSize  uint64
	Processes uint64
	Data      uint64
}

// Layer is a folder of the host that is shown inside and can be changed there
// without changing on the host.
type Layer struct {
	// Name is its folder in UpDir.
	Name string
	// Source is its path on the host, Tree a mount of it in which it belongs to
	// the sandbox's users.
	Source string
	Tree   int
	Target string
}

// Mount is a folder of the host that is shown as it is.
type Mount struct {
	Source   string
	Tree     int
	Target   string
	ReadOnly bool
}

// Report is how building the sandbox went.
type Report struct {
	// Error is what failed, exactly; "" when the sandbox is ready.
	Error string
	// NoOverlay says that the root could not be an overlay: Plain may work.
	NoOverlay bool
	// Notes say what is less than it should be, although it works.
	Notes []string
}

// Config is what the runner needs to know of the place it is in.
type Config struct {
	ID string
	// State and Output are the runner's own folders, by paths that only the
	// runner can use. What lies in Output is seen by all as OutputSeen.
	State, Output, OutputSeen string
	// Workspace and Home are seen by all.
	Workspace, Home string
	// Network is a sandbox.Network.
	Network string
	Env     map[string]string
	// Disk is the limit for all that lies in Written, by paths that only the runner can use.
	Disk    int64
	Written []string
}
