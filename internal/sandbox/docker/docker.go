// Package docker runs each sandbox in a container of an engine with the Docker API:
// Docker or Podman.
//
// A sandbox is a container and a volume, found by their names and labels. The container
// has no network, no capabilities, and the runner as its first process; the volume is the
// workspace. The server talks to the runner through an exec of the engine that connects
// standard input and output to the runner's socket: no ports are published, and the
// engine's socket is never mounted.
package docker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/connect"
	"deckhand/internal/sandbox/docker/imagecache"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/pool"
	"deckhand/internal/sandbox/docker/pull"
	"deckhand/internal/sandbox/docker/words"
	"deckhand/internal/sandbox/lock"
)

// Options configure a Driver.
type Options struct {
	// Host is the address of the engine; "" is DOCKER_HOST, or the default socket.
	Host string
	// Runner is where the static runner program lies on this machine. Keep it at
	// one place and replace it by renaming: a stopped container that has it
	// mounted gets the new one with its next start.
	Runner string
	// RunnerFor returns the path of the runner for another architecture than this program's. May be nil.
	RunnerFor func(arch string) (string, error)
	// Image is taken when a Spec names none.
	Image string
	// Pull says when images are pulled: "missing" (the default), "always" before a container is created, or "never".
	Pull string
	// Reach checks the registry, as HOST:PORT, of an image that a user chose. Nil allows all.
	Reach func(ctx context.Context, address string) error
	// Prefix starts the names of all containers and volumes; default "deckhand".
	Prefix string
	// Instance says whose boxes these are, where several servers share an engine.
	Instance string
	// Outward serves what the sandboxes' proxies are asked for.
	Outward sandbox.Outward
	// User runs everything inside; "" is the user of the image, or root.
	User   string
	Logger *slog.Logger
}

// Name is how handles call this driver.
const Name = "docker"

// Where things are inside a container.
const (
	home       = "/.deckhand"
	runnerPath = words.RunnerPath
	socketPath = home + "/run/runner.sock"
	statePath  = home + "/state"
	outputPath = home + "/output"
	storePath  = "/.deckhand-checkpoints"
)

// Driver is a sandbox.Driver on a container engine.
type Driver struct {
	options Options
	log     *slog.Logger
	engine  connect.Engine
	words   words.Words
	// find finds what belongs to our sandboxes.
	find names.Finder
	// copies becomes true once mounting the runner has turned out not to work.
	copies atomic.Bool
	// mounted becomes true once the runner was seen inside a container as we know it.
	mounted atomic.Bool
	// counted becomes true once the engine turned out to ask for more processes
	// for a user than it may give, if it is not told how many.
	counted atomic.Bool

	// plain becomes true once the engine refused to give the loopback its IPv6 address.
	plain atomic.Bool
	// known is set once the engine was asked what it is.
	known atomic.Pointer[about]
	// id is the ID of the engine, as it was said last; see Identify.
	id atomic.Pointer[string]
	// arch is the architecture of Options.Runner; other is the runner for the engine's, if that differs.
	arch  string
	other atomic.Pointer[string]

	patience connect.Patience

	busy   lock.Table
	pulls  pull.Pulls
	images imagecache.Cache
	// helpers keep checkpoints; restoring is held during a restore.
	helpers   *pool.Pool
	restoring lock.Table

	mu     sync.Mutex
	parked map[string]*parked
	closed bool
}

var (
	_ sandbox.Driver      = (*Driver)(nil)
	_ sandbox.Viewer      = (*Driver)(nil)
	_ sandbox.Inspector   = (*Driver)(nil)
	_ sandbox.Snapshotter = (*Driver)(nil)
	_ sandbox.Checker     = (*Driver)(nil)
	_ sandbox.Pinger      = (*Driver)(nil)

	_ sandbox.Checkpointer = (*Driver)(nil)
)

// New makes a Driver. It does not speak to the engine yet: see Ping.
func New(o Options) (*Driver, error) {
	if o.Prefix == "" {
		o.Prefix = "deckhand"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	engine, err := connect.Open(o.Host)
	if err != nil {
		return nil, err
	}
	d := &Driver{
		options: o, log: o.Logger, engine: engine,
		parked: map[string]*parked{}, arch: runtime.GOARCH,
		words: words.Words{Address: engine.Address, Log: o.Logger},
	}
	d.find = names.Finder{Names: names.Names{Prefix: o.Prefix, Instance: o.Instance}, Engine: engine.Client, Words: d.words}
	d.pulls = pull.Pulls{Engine: engine.Client, Words: d.words.Pull, Registries: pull.Rule{Reach: o.Reach, Own: o.Image, Log: o.Logger}}
	d.helpers = pool.New(d.startHelper, d.discardHelper)
	return d, nil
}

// Close closes all unused connections. Sandboxes keep running.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	left := d.parked
	d.parked = map[string]*parked{}
	d.mu.Unlock()
	for _, p := range left {
		p.timer.Stop()
		p.box.Close()
	}
	d.helpers.Close()
	return d.engine.Close()
}

// pingTime is how long an engine may take to say that it is there.
const pingTime = 2 * time.Second

// Ping says whether an engine answers.
func (d *Driver) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	if _, err := d.engine.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return d.words.Unreachable(err)
	}
	return nil
}

// data is what a handle keeps for us. It makes no difference to what the handle
// finds, since names are made of IDs; it says what was there for those who look
// into the log, and which image to look at a workspace with.
type data struct {
	Container string `json:"container,omitempty"`
	Image     string `json:"image,omitempty"`
	Runner    string `json:"runner,omitempty"`
	// User runs the connector; "" is the user of the container.
	User string `json:"user,omitempty"`
	// Engine is the address of the engine, and EngineID its ID. EngineID is "" if it has none, or if the workspace is a
	// folder of this machine.
	Engine   string `json:"engine,omitempty"`
	EngineID string `json:"engine_id,omitempty"`

	folder bool // the workspace is a folder of this machine
}

func (d *Driver) handle(id string, v data) sandbox.Handle {
	v.Engine = d.engine.Address
	if !v.folder {
		v.EngineID = d.ID()
	}
	raw, _ := json.Marshal(v)
	return sandbox.Handle{Driver: Name, ID: id, Data: raw}
}

func dataOf(h sandbox.Handle) data {
	var v data
	_ = json.Unmarshal(h.Data, &v) // a handle without data finds its sandbox too
	if v.Runner == "" {
		v.Runner = runnerPath
	}
	return v
}

// errClosed says that the driver was closed.
var errClosed = errors.New("the docker driver is closed")
