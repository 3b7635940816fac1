package sandbox

import (
	"context"
	"log/slog"
)

// Kind is a driver that a server can be started with. Each driver declares its
// own, and package drivers lists them.
type Kind struct {
	Properties
	// Open makes the driver. An error says what is wrong with the options.
	Open func(Options) (Driver, error)
}

// Properties say how a driver differs from the others. Code outside of a driver
// looks at these, never at the name.
type Properties struct {
	// Name is what --sandbox and handles call the driver.
	Name string
	// Label describes it in a few words, for the help of --sandbox.
	Label string
	// Auto is the rank among the drivers that auto tries, highest first; 0 for a
	// driver that must be asked for by name.
	Auto int
	// Images is true if it runs container images.
	Images bool
	// SlowStart is true if a start takes long enough to be begun ahead of need.
	SlowStart bool
	// Confined is true if there is a sandbox around what runs: a network that can be
	// taken away, and a workspace under a name of its own.
	Confined bool
	// Folders is true if a folder of this machine can be a workspace.
	Folders bool
}

// Options are what drivers are opened with. A driver takes what it needs.
type Options struct {
	// Dir is where workspaces lie that are folders of this machine.
	Dir string
	// Runner is the runner's program on this machine.
	Runner string
	// RunnerFor returns the path of the runner for another architecture than this program's. May be nil.
	RunnerFor func(arch string) (string, error)
	// Shared is a folder for what other processes can use too, if the driver is for a single sandbox.
	Shared string
	// Instance tells our containers from another server's.
	Instance string
	Outward  Outward
	Logger   *slog.Logger

	Limits   Limits // of a sandbox
	Together Limits // of all sandboxes at once

	RootFS string // of sandboxes without an image; "" for this machine's, without its secrets
	Image  string // of sandboxes whose Spec names none
	Pull   string // when to pull images: missing, always or never
	// Reach checks the registry, as HOST:PORT, of an image that a user chose. Nil allows all.
	Reach func(ctx context.Context, address string) error
	User  string // inside an image; "" for the image's own
	// EngineHosts are the addresses of container engines; none for the default one.
	EngineHosts []string
}

// EngineLister is a Driver that runs sandboxes on container engines.
type EngineLister interface {
	// Engines returns the state of each engine.
	Engines(ctx context.Context) []Engine
}

// Sharer is a Driver whose sandboxes can be used by several servers, because they run on container engines that these reach.
type Sharer interface {
	// EngineOf returns the ID of the engine that a handle names; "" if only servers on the machine that started the sandbox
	// can use it.
	EngineOf(h Handle) string
	// Reached returns the IDs of the engines that answer.
	Reached(ctx context.Context) []string
}

// Engine is the state of a container engine.
type Engine struct {
	Address string
	Version string // such as Docker 20.10.24
	// Rootless is true if the engine runs as an ordinary user.
	Rootless bool
	// CPUs and Memory are those of its machine, Sandboxes the number of running sandboxes, including those of other servers.
	CPUs      int
	Memory    int64
	Sandboxes int
	// Error says why the engine does not answer; "" if it does.
	Error string
}

// Pinger is a Driver that depends on a program which may not be running.
type Pinger interface {
	// Ping fails if the program does not answer.
	Ping(ctx context.Context) error
}

// Prober is a Driver that can quickly say whether sandboxes can be started here.
type Prober interface {
	// Possible fails if none can.
	Possible() error
}

// Pather is a Driver whose sandboxes see programs of this machine.
type Pather interface {
	// Path is the PATH inside for a server with this PATH, "" for the runner's default.
	Path(ours string) string
}
