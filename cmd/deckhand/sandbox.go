package main

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
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/sandbox/runner/embedded"
)

// sandboxFlags say where the agents' commands run.
type sandboxFlags struct {
	Sandbox          string         `name:"sandbox" env:"DECKHAND_SANDBOX" default:"auto" enum:"auto,local,docker,host" help:"Where commands run: local (Linux namespaces, no daemon), docker (any image), host (NO sandbox), or auto (docker if available, otherwise local)."`
	SandboxImage     string         `name:"sandbox-image" env:"DECKHAND_SANDBOX_IMAGE" default:"buildpack-deps:bookworm" placeholder:"IMAGE" help:"Default image of docker sandboxes (default: ${default})."`
	SandboxUser      string         `name:"sandbox-user" env:"DECKHAND_SANDBOX_USER" placeholder:"UID[:GID]" help:"User inside docker sandboxes. Default: the image's user."`
	SandboxRootFS    string         `name:"sandbox-rootfs" env:"DECKHAND_SANDBOX_ROOTFS" placeholder:"DIR" help:"Root file system of local sandboxes. Default: this machine's, without its secrets."`
	SandboxCPUs      float64        `name:"sandbox-cpus" env:"DECKHAND_SANDBOX_CPUS" default:"2" placeholder:"N" help:"CPU limit of a sandbox (default: ${default}), multiplied by the user's remote_runtime_resource_factor."`
	SandboxMemory    byteSize       `name:"sandbox-memory" env:"DECKHAND_SANDBOX_MEMORY" default:"4G" placeholder:"SIZE" help:"Memory limit of a sandbox (default: ${default}), multiplied by the user's remote_runtime_resource_factor."`
	SandboxProcesses int            `name:"sandbox-processes" env:"DECKHAND_SANDBOX_PROCESSES" default:"1024" placeholder:"N" help:"Limit of processes and threads in a sandbox (default: ${default})."`
	SandboxDisk      byteSize       `name:"sandbox-disk" env:"DECKHAND_SANDBOX_DISK" default:"10G" placeholder:"SIZE" help:"Disk limit of a sandbox, including its workspace (default: ${default})."`
	DockerHost       string         `name:"docker-host" env:"DECKHAND_DOCKER_HOST" placeholder:"URL" help:"Container engine. Default: DOCKER_HOST, or the default socket."`
	Egress           string         `name:"egress" env:"DECKHAND_EGRESS" default:"open" enum:"open,allowlist,off" help:"Network access of sandboxes: open (public internet), allowlist (--egress-allow) or off. Private addresses are always blocked, except --egress-private."`
	EgressAllow      []string       `name:"egress-allow" env:"DECKHAND_EGRESS_ALLOW" placeholder:"HOST" help:"Hosts for --egress allowlist: example.org, *.example.org, example.org:8443."`
	EgressPrivate    string         `name:"egress-private" env:"DECKHAND_EGRESS_PRIVATE" placeholder:"HOST:PORT,…" help:"Private addresses that sandboxes may access, such as a package mirror."`
	Together         sandbox.Limits `kong:"-"` // of all local sandboxes at once; see shareFlags
	Folder           string         `kong:"-"` // the workspace of every conversation, "" for one of its own each
	RunnerPath       string         `name:"runner-path" env:"DECKHAND_RUNNER" hidden:"" help:"Runner to use instead of the embedded one."`
}

// byteSize is a size as people write it: 512M, 4G, 1073741824.
type byteSize int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *byteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(string(text))), "B"), "I")
	unit := int64(1)
	for i, u := range "KMGT" {
		if t, ok := strings.CutSuffix(s, string(u)); ok {
			s, unit = t, 1<<(10*(i+1))
			break
		}
	}
	var n float64
	if _, err := fmt.Sscanf(s+"\n", "%g\n", &n); err != nil || n <= 0 || n*float64(unit) > 1<<62 {
		return fmt.Errorf("%q is not a size; use a value such as 512M or 4G", text)
	}
	*b = byteSize(n * float64(unit))
	return nil
}

func (f *sandboxFlags) limits() sandbox.Limits {
	return sandbox.Limits{CPUs: f.SandboxCPUs, Memory: int64(f.SandboxMemory), Processes: f.SandboxProcesses, Disk: int64(f.SandboxDisk)}
}

// check refuses limits under which nothing could run.
func (f *sandboxFlags) check() error {
	switch {
	case f.SandboxCPUs < 0.05:
		return errors.New("--sandbox-cpus: a sandbox needs at least 0.05 processors")
	case f.SandboxMemory < 32<<20:
		return errors.New("--sandbox-memory: a sandbox needs at least 32M")
	case f.SandboxProcesses < 16:
		return errors.New("--sandbox-processes: a sandbox needs at least 16")
	case f.SandboxDisk < 1<<20:
		return errors.New("--sandbox-disk: a sandbox needs at least 1M")
	}
	return nil
}

func (f *sandboxFlags) policy() (egress.Policy, error) {
	p := egress.Policy{Mode: egress.Mode(f.Egress), Allow: f.EgressAllow}
	if len(f.EgressAllow) > 0 && p.Mode != egress.Allowlist {
		return p, errors.New("--egress-allow needs --egress allowlist")
	}
	if err := p.Check(); err != nil {
		return p, fmt.Errorf("--egress-allow: %w", err)
	}
	return p, nil
}

// hands is the chosen driver.
type hands struct {
	sandbox.Driver
	name string
	// images is true when it runs container images; slow when a start takes long
	// enough to be begun ahead of need.
	images, slow bool
}

// close ends what the driver does by itself. Sandboxes run on.
func (h hands) close() error {
	if c, ok := h.Driver.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// pingTime is how long an engine may take to answer before auto goes on without it.
const pingTime = 2 * time.Second

// driver makes the chosen one. instance tells our containers from another server's.
func (f *sandboxFlags) driver(ctx context.Context, dataDir, instance string, out sandbox.Outward, logger *slog.Logger) (hands, error) {
	runner := f.RunnerPath
	if runner == "" {
		var err error
		if runner, err = embedded.Install(filepath.Join(dataDir, "runner")); err != nil {
			return hands{}, err
		}
	}
	runner, err := filepath.Abs(runner)
	if err != nil {
		return hands{}, err
	}
	boxes := filepath.Join(dataDir, "boxes")
	newDocker := func() (*docker.Driver, error) {
		return docker.New(docker.Options{Host: f.DockerHost, Runner: runner, Image: f.SandboxImage, User: f.SandboxUser, Prefix: "deckhand",
			Instance: instance, Outward: out, Logger: logger})
	}
	newLocal := func() (hands, error) {
		d, err := local.New(local.Options{Dir: boxes, Runner: runner, RootFS: f.SandboxRootFS, Outward: out, Limits: f.limits(), Together: f.Together, Logger: logger})
		if err != nil {
			return hands{}, err
		}
		return hands{Driver: d, name: local.Name}, nil
	}
	switch f.Sandbox {
	case "docker":
		d, err := newDocker()
		if err != nil {
			return hands{}, err
		}
		return hands{Driver: d, name: docker.Name, images: true, slow: true}, nil
	case "host":
		logger.Warn(host.Warning)
		d, err := host.New(host.Options{Dir: boxes, Runner: runner, Logger: logger})
		if err != nil {
			return hands{}, err
		}
		return hands{Driver: d, name: host.Name}, nil
	case "auto":
		ctx, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		if d, err := newDocker(); err == nil && d.Ping(ctx) == nil {
			return hands{Driver: d, name: docker.Name, images: true, slow: true}, nil
		}
	}
	return newLocal()
}

// noHands stands where no sandbox can be had: conversations work, and what needs
// a sandbox says why there is none.
type noHands struct{ why error }

func (n noHands) Start(context.Context, sandbox.Spec, func(sandbox.Progress)) (sandbox.Handle, error) {
	return sandbox.Handle{}, &sandbox.Unavailable{Reason: "This server cannot create sandboxes: " + n.why.Error(), Cause: n.why}
}
func (noHands) Attach(context.Context, sandbox.Handle) (*sandbox.Sandbox, error) {
	return nil, sandbox.ErrGone
}
func (noHands) Stop(context.Context, sandbox.Handle) error    { return nil }
func (noHands) Destroy(context.Context, sandbox.Handle) error { return nil }
func (noHands) List(context.Context) ([]sandbox.Found, error) { return nil, nil }

// choose makes the driver and tries it. One that was asked for by name must
// work; auto goes on without a sandbox, loudly.
func (f *sandboxFlags) choose(ctx context.Context, dataDir, instance string, out sandbox.Outward, logger *slog.Logger) (hands, error) {
	h, err := f.driver(ctx, dataDir, instance, out, logger)
	if q, ok := h.Driver.(interface{ Possible() error }); ok && err == nil {
		if err = q.Possible(); err != nil {
			err = fmt.Errorf("--sandbox %s does not work here: %w", h.name, err)
		}
	}
	if err == nil {
		return h, nil
	}
	if h.Driver != nil {
		err = errors.Join(err, h.close())
	}
	if f.Sandbox != "auto" {
		return h, err
	}
	logger.Error("NO SANDBOX AVAILABLE: agents cannot run commands; run deckhand doctor for details", "why", err)
	return hands{Driver: noHands{err}, name: "none"}, nil
}

// findings asks a driver about this machine.
func findings(ctx context.Context, d sandbox.Driver) []sandbox.Finding {
	if c, ok := d.(sandbox.Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

// usualPath finds programs on any system.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// path is where a local sandbox, which sees this machine's programs, looks for
// them: where we do, as far as it is not hidden.
func (f *sandboxFlags) path(h hands, ours string) string {
	if h.name != local.Name || f.SandboxRootFS != "" {
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
