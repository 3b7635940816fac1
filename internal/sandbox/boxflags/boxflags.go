// Package boxflags holds the flags that configure sandboxes, for every command that starts some.
package boxflags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"

	"deckhand/internal/config"
	"deckhand/internal/outbound"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/sandbox/egress"
)

// Flags configure the sandboxes.
type Flags struct {
	Sandbox          string          `name:"sandbox" env:"DECKHAND_SANDBOX" default:"auto" enum:"${sandbox_drivers}" help:"Where commands run: ${sandbox_help}."`
	SandboxImage     string          `name:"sandbox-image" env:"DECKHAND_SANDBOX_IMAGE" default:"buildpack-deps:bookworm" placeholder:"IMAGE" help:"Default image of docker sandboxes (default: ${default})."`
	SandboxPull      string          `name:"sandbox-pull" env:"DECKHAND_SANDBOX_PULL" default:"missing" enum:"missing,always,never" help:"When to pull images of docker sandboxes: missing, always (for each new sandbox) or never."`
	SandboxUser      string          `name:"sandbox-user" env:"DECKHAND_SANDBOX_USER" placeholder:"USER[:GROUP]" help:"User inside docker sandboxes, as a UID or a name in the image. Default: the image's user."`
	SandboxRootFS    string          `name:"sandbox-rootfs" env:"DECKHAND_SANDBOX_ROOTFS" placeholder:"DIR" help:"Root file system of local sandboxes. Default: this machine's, without its secrets."`
	SandboxCPUs      float64         `name:"sandbox-cpus" env:"DECKHAND_SANDBOX_CPUS" default:"2" placeholder:"N" help:"CPU limit of a sandbox (default: ${default}), multiplied by the user's remote_runtime_resource_factor."`
	SandboxMemory    config.ByteSize `name:"sandbox-memory" env:"DECKHAND_SANDBOX_MEMORY" default:"4G" placeholder:"SIZE" help:"Memory limit of a sandbox (default: ${default}), multiplied by the user's remote_runtime_resource_factor."`
	SandboxProcesses int             `name:"sandbox-processes" env:"DECKHAND_SANDBOX_PROCESSES" default:"1024" placeholder:"N" help:"Maximum number of processes and threads in a sandbox (default: ${default})."`
	SandboxDisk      config.ByteSize `name:"sandbox-disk" env:"DECKHAND_SANDBOX_DISK" default:"10G" placeholder:"SIZE" help:"Disk limit of a sandbox, including its workspace (default: ${default})."`
	DockerHost       []string        `name:"docker-host" env:"DECKHAND_DOCKER_HOST" placeholder:"URL" help:"Address of a container engine: unix:///PATH, tcp://HOST:PORT with the TLS certificates in DOCKER_CERT_PATH or in ?certs=DIR, or ssh://USER@HOST, optionally with the path of a socket. Repeat it to spread sandboxes over several engines. With it, --sandbox auto means docker. Default: DOCKER_HOST, or the default socket."`
	Egress           string          `name:"egress" env:"DECKHAND_EGRESS" default:"open" enum:"open,allowlist,off" help:"Network access for sandboxes: open (public internet), allowlist (--egress-allow) or off. Private addresses are always blocked, except --egress-private."`
	EgressAllow      []string        `name:"egress-allow" env:"DECKHAND_EGRESS_ALLOW" placeholder:"HOST" help:"Hosts for --egress allowlist: example.org, *.example.org, example.org:8443."`
	EgressPrivate    string          `name:"egress-private" env:"DECKHAND_EGRESS_PRIVATE" placeholder:"HOST:PORT,…" help:"Private addresses that sandboxes may access, such as a package mirror."`
	Together         sandbox.Limits  `kong:"-"` // of all local sandboxes together; see shareFlags
	Folder           string          `kong:"-"` // the workspace of all conversations; "" for one each
	Shared           string          `kong:"-"` // the directory that processes share, for a server of one conversation
	RemoveSandboxes  bool            `name:"remove-sandboxes" env:"DECKHAND_REMOVE_SANDBOXES" hidden:"" help:"Remove all sandboxes and workspaces when the server stops."`
	RunnerPath       string          `name:"runner-path" env:"DECKHAND_RUNNER" hidden:"" help:"Path of a runner binary to use instead of the embedded one."`
}

// PerSandbox returns the limits of one sandbox.
func (f *Flags) PerSandbox() sandbox.Limits {
	return sandbox.Limits{CPUs: f.SandboxCPUs, Memory: int64(f.SandboxMemory), Processes: f.SandboxProcesses, Disk: int64(f.SandboxDisk)}
}

// CheckSandboxes returns an error if the flags cannot be used: limits that are too small to run anything, a wrong network policy, or
// wrong addresses of container engines.
func (f *Flags) CheckSandboxes() error {
	if _, _, err := f.Policy(); err != nil {
		return err
	}
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
	if err := config.CheckFolder("--sandbox-rootfs", f.SandboxRootFS); err != nil {
		return err
	}
	if f.SandboxUser != "" && !userForm.MatchString(f.SandboxUser) {
		return fmt.Errorf("--sandbox-user %q is not a UID or user name, with an optional group such as 1000:1000", f.SandboxUser)
	}
	return drivers.CheckEngines(f.Chosen(), f.DockerHost)
}

var userForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)

// Engine returns DOCKER_HOST if the driver may use it, as the value of --docker-host.
func (f *Flags) Engine() []config.Setting {
	host := os.Getenv("DOCKER_HOST")
	if p, ok := drivers.Find(f.Chosen()); host == "" || ok && !p.Images { // auto is not the name of a driver
		return nil
	}
	return []config.Setting{{Name: "docker-host", Value: host, Source: "environment DOCKER_HOST"}}
}

// Warnings lists flags that have no effect.
func (f *Flags) Warnings() (out []string) {
	if p, _ := drivers.Find(f.Chosen()); len(f.DockerHost) > 0 && !p.Images {
		out = append(out, fmt.Sprintf("--docker-host has no effect with --sandbox %s", f.Sandbox))
	}
	return out
}

// Chosen returns the driver: that of --sandbox, or docker if --docker-host says which engine to use.
func (f *Flags) Chosen() string { return drivers.WithEngines(f.Sandbox, f.DockerHost) }

// ForFolder checks the flags, and returns the driver to use when a folder of this machine is the workspace.
func (f *Flags) ForFolder() (sandbox.Properties, error) {
	p, err := drivers.ForFolder(f.Chosen())
	return p, cmp.Or(err, f.CheckSandboxes())
}

// Reachable returns an error if the driver needs a program, such as a container engine, that does not respond.
func (f *Flags) Reachable(ctx context.Context) error {
	return drivers.Ping(ctx, f.Chosen(), f.DockerHost)
}

// Policy returns the network policy of all sandboxes, and the private addresses that it allows.
func (f *Flags) Policy() (p egress.Policy, private []outbound.HostPort, err error) {
	p = egress.Policy{Mode: egress.Mode(f.Egress), Allow: f.EgressAllow}
	if len(f.EgressAllow) > 0 && p.Mode != egress.Allowlist {
		return p, nil, errors.New("--egress-allow needs --egress allowlist")
	}
	if err := p.Check(); err != nil {
		return p, nil, fmt.Errorf("--egress-allow: %w", err)
	}
	if private, err = outbound.ParseAllow(f.EgressPrivate); err != nil {
		return p, nil, errors.New(strings.Replace(err.Error(), "--allow-private", "--egress-private", 1))
	}
	return p, private, nil
}

// Driver is the config of the driver that the flags name.
func (f *Flags) Driver(dataDir, instance string, out sandbox.Outward, logger *slog.Logger) drivers.Config {
	return drivers.Config{Kind: f.Chosen(), DataDir: dataDir, RunnerPath: f.RunnerPath, Options: sandbox.Options{Shared: f.Shared, Instance: instance, Outward: out, Logger: logger, Limits: f.PerSandbox(),
		Together: f.Together, RootFS: f.SandboxRootFS, Image: f.SandboxImage, Pull: f.SandboxPull, User: f.SandboxUser, EngineHosts: f.DockerHost}}
}
