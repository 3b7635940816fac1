// Package drivers chooses the sandbox driver: local, docker, host, or none. It is
// the one place that knows all of them.
package drivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/sandbox/runner/embedded"
)

// Driver is the chosen driver.
type Driver struct {
	sandbox.Driver
	Name string
	// Images is true when it runs container images; Slow when a start takes long
	// enough to be begun ahead of need.
	Images, Slow bool
}

// Confined says that there is a sandbox around what runs: a network that can be
// taken away, and a workspace under a name of its own.
func (d Driver) Confined() bool { return d.Name != host.Name }

// Close ends what the driver does by itself. Sandboxes run on.
func (d Driver) Close() error {
	if c, ok := d.Driver.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// pingTime is how long an engine may take to answer before auto goes on without it.
const pingTime = 2 * time.Second

// Config says which driver it is and what it works with.
type Config struct {
	Kind string // auto, local, docker or host
	// DataDir is where the runner is installed and workspaces lie.
	DataDir string
	// Instance tells our containers from another server's.
	Instance string
	Outward  sandbox.Outward
	Logger   *slog.Logger

	Limits     sandbox.Limits // of a sandbox
	Together   sandbox.Limits // of all local sandboxes at once
	RootFS     string         // of local sandboxes; "" for this machine's, without its secrets
	Image      string         // of docker sandboxes
	User       string         // inside docker sandboxes
	DockerHost string
	RunnerPath string // "" for the embedded one
}

// Open makes the driver.
func Open(ctx context.Context, f Config) (Driver, error) {
	runner := f.RunnerPath
	if runner == "" {
		var err error
		if runner, err = embedded.Install(filepath.Join(f.DataDir, "runner")); err != nil {
			return Driver{}, err
		}
	}
	runner, err := filepath.Abs(runner)
	if err != nil {
		return Driver{}, err
	}
	boxes := filepath.Join(f.DataDir, "boxes")
	newDocker := func() (*docker.Driver, error) {
		return docker.New(docker.Options{Host: f.DockerHost, Runner: runner, Image: f.Image, User: f.User, Prefix: "deckhand",
			Instance: f.Instance, Outward: f.Outward, Logger: f.Logger})
	}
	newLocal := func() (Driver, error) {
		d, err := local.New(local.Options{Dir: boxes, Runner: runner, RootFS: f.RootFS, Outward: f.Outward, Limits: f.Limits, Together: f.Together, Logger: f.Logger})
		if err != nil {
			return Driver{}, err
		}
		return Driver{Driver: d, Name: local.Name}, nil
	}
	switch f.Kind {
	case "docker":
		d, err := newDocker()
		if err != nil {
			return Driver{}, err
		}
		return Driver{Driver: d, Name: docker.Name, Images: true, Slow: true}, nil
	case "host":
		f.Logger.Warn(host.Warning)
		d, err := host.New(host.Options{Dir: boxes, Runner: runner, Logger: f.Logger})
		if err != nil {
			return Driver{}, err
		}
		return Driver{Driver: d, Name: host.Name}, nil
	case "auto":
		ctx, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		if d, err := newDocker(); err == nil && d.Ping(ctx) == nil {
			return Driver{Driver: d, Name: docker.Name, Images: true, Slow: true}, nil
		}
	}
	return newLocal()
}

// unavailable is the driver where no sandbox can be had: conversations work, and what needs
// a sandbox says why there is none.
type unavailable struct{ why error }

func (n unavailable) Start(context.Context, sandbox.Spec, func(sandbox.Progress)) (sandbox.Handle, error) {
	return sandbox.Handle{}, &sandbox.Unavailable{Reason: "This server cannot create sandboxes: " + n.why.Error(), Cause: n.why}
}
func (unavailable) Attach(context.Context, sandbox.Handle) (*sandbox.Sandbox, error) {
	return nil, sandbox.ErrGone
}
func (unavailable) Stop(context.Context, sandbox.Handle) error    { return nil }
func (unavailable) Destroy(context.Context, sandbox.Handle) error { return nil }
func (unavailable) List(context.Context) ([]sandbox.Found, error) { return nil, nil }

// Choose makes the driver and tries it. One that was asked for by name must
// work; auto goes on without a sandbox, loudly.
func Choose(ctx context.Context, f Config) (Driver, error) {
	d, err := Open(ctx, f)
	if q, ok := d.Driver.(interface{ Possible() error }); ok && err == nil {
		if err = q.Possible(); err != nil {
			err = fmt.Errorf("--sandbox %s does not work here: %w", d.Name, err)
		}
	}
	if err == nil {
		return d, nil
	}
	if d.Driver != nil {
		err = errors.Join(err, d.Close())
	}
	if f.Kind != "auto" {
		return d, err
	}
	f.Logger.Error("NO SANDBOX AVAILABLE: agents cannot run commands; run deckhand doctor for details", "why", err)
	return Driver{Driver: unavailable{err}, Name: "none"}, nil
}

// Findings asks a driver about this machine.
func Findings(ctx context.Context, d sandbox.Driver) []sandbox.Finding {
	if c, ok := d.(sandbox.Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

// usualPath finds programs on any system.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Path is where a local sandbox, which sees this machine's programs, looks for
// them: where we do, as far as it is not hidden.
func (d Driver) Path(rootFS, ours string) string {
	if d.Name != local.Name || rootFS != "" {
		return ""
	}
	var seen []string
	for _, dir := range append(filepath.SplitList(ours), filepath.SplitList(usualPath)...) {
		visible := strings.HasPrefix(dir, "/usr/") || strings.HasPrefix(dir, "/opt/") || dir == "/bin" || dir == "/sbin"
		if visible && !slices.Contains(seen, dir) {
			seen = append(seen, dir)
		}
	}
	return strings.Join(seen, ":")
}
