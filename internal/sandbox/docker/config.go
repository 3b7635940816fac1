package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/account"
	"deckhand/internal/sandbox/docker/bind"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/words"
)

// shape is what of a Spec decides whether a container that exists will do. What
// can be changed in a container (its limits) is not part of it, nor is how the
// runner got in.
type shape struct {
	Image    string
	Prepared bool
	Mounts   []sandbox.Mount
	Network  sandbox.Network
	User     string
	Folder   string `json:",omitempty"`
}

// label is the shape as one word.
func (s shape) label() string {
	raw, _ := json.Marshal(s)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// shapeOf checks a Spec and takes the shape out of it.
func (d *Driver) shapeOf(ctx context.Context, spec sandbox.Spec) (shape, error) {
	s := shape{Image: spec.Image, Prepared: spec.Prepared, Mounts: spec.Mounts, Network: spec.Network, User: d.options.User}
	if err := sandbox.CheckID(spec.ID); err != nil {
		return s, err
	}
	if s.Image == "" {
		s.Image = d.options.Image
	}
	if s.Image == "" {
		return s, words.Unavailable(nil, "No container image is set. Set one in the settings, or a default with --sandbox-image.")
	}
	if !s.Prepared && d.options.Runner == "" {
		return s, words.Unavailable(nil, "There is no runner to put into a container of the image %s.", s.Image)
	}
	for _, m := range s.Mounts {
		if err := bind.Mount(m, home, d.engine.Address); err != nil {
			return s, err
		}
	}
	if spec.Folder != "" {
		return s, d.bound(ctx, &s, spec.Folder)
	}
	return s, nil
}

// plan is everything that a container is made from.
type plan struct {
	shape
	id         string
	name       string
	image      image
	limits     sandbox.Limits
	labels     map[string]string
	generation int
	// program is the runner as the container calls it.
	program string
	// mounts says that the runner is mounted; copies that it is copied. Neither
	// if it is in the image.
	mounts, copies bool
	// unmountable says that mounting it was tried and failed.
	unmountable bool
	// passing makes a container for one look: it can only read the workspace, and
	// goes when its runner does.
	passing bool
	// writes lets a passing one change the workspace after all.
	writes bool
	// volume is the workspace.
	volume string
	// store is the volume with checkpoints, and other the one of another sandbox, for containers that use them.
	store, other string
	// helper creates a container that is kept after its runner exits, until it is removed.
	helper bool
}

// user is who runs everything in the container; "" is root.
func (p *plan) user() string {
	if p.User != "" {
		return p.User
	}
	return p.image.user
}

// Capabilities are those of a runner that is root, by which it protects its folders from what it starts as root. What it starts has none.
var Capabilities = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SETPCAP"}

// isRoot reports whether everything in the container runs as root.
func (p *plan) isRoot() bool {
	return account.IsRoot(p.user())
}

// Connector is the user of what connects the server to the runner: another than that of the commands in the sandbox, which
// cannot trace it then.
var Connector = fmt.Sprintf("%d:%d", sandbox.RunnerOwner, sandbox.RunnerOwner)

// connector is the user for this container. The runner of a prepared image may be too old for another than its own.
func (p *plan) connector() string {
	if p.Prepared {
		return ""
	}
	return Connector
}

// kind is what the container is.
func (p *plan) kind() names.Kind {
	switch {
	case p.helper:
		return names.Helper
	case p.passing:
		return names.Passing
	}
	return names.Box
}

// Limits that no Spec speaks of.
const (
	OpenFiles = 16384
	// UserProcesses is for all sandboxes of one user together, so it is large;
	// what bounds a single one is its control group.
	UserProcesses = 32768
	SharedBytes   = 64 << 20
	// killFirst makes the kernel take a sandbox before the server when the whole
	// machine is out of memory.
	killFirst = 500
)

// resources are the limits in the engine's words.
func resources(l sandbox.Limits) container.Resources {
	processes := int64(l.Processes)
	// A quota is the same as a number of processors for the kernel. The engine
	// refuses more processors than the machine has, which would make the defaults
	// fail on small machines; it takes any quota.
	const period = 100_000
	return container.Resources{
		Memory: l.Memory, MemorySwap: l.Memory, // equal: no swap
		CPUPeriod: period, CPUQuota: max(1000, int64(l.CPUs*period)),
		PidsLimit: &processes,
		// They are said in so many words because what an engine takes by default
		// may be more than it is allowed to give.
		Ulimits: []*container.Ulimit{
			{Name: "nofile", Soft: OpenFiles, Hard: OpenFiles},
			{Name: "core", Soft: 0, Hard: 0},
			{Name: "fsize", Soft: l.Disk, Hard: l.Disk}, // no single file is larger than all may be
		},
	}
}

// Masked are the kernel's files that programs inside must not see: those that engines hide by
// default, and those that reveal the machine's memory.
var Masked = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
	"/proc/timer_list", "/proc/timer_stats", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
	"/sys/devices/virtual/powercap", "/sys/firmware",
}

// create makes the container, and with it the volume if there is none.
func (d *Driver) create(ctx context.Context, p *plan) (string, error) {
	volumeLabels := d.find.Labels(p.kind(), p.id, p.labels)
	labels := names.Whole(volumeLabels)
	labels[names.Image], labels[names.Runner], labels[names.Shape] = p.Image, p.program, p.label()
	labels[names.Connector] = p.connector()
	labels[names.Generation] = strconv.Itoa(p.generation)

	network := "proxied"
	if p.Network == sandbox.Isolated {
		network = string(sandbox.Isolated)
	}
	grace, no := 1, false
	host := &container.HostConfig{
		NetworkMode:   "none",
		CapDrop:       []string{"ALL"},
		SecurityOpt:   []string{"no-new-privileges"},
		MaskedPaths:   Masked,
		Resources:     resources(p.limits),
		ShmSize:       SharedBytes,
		OomScoreAdj:   killFirst,
		Init:          &no,
		AutoRemove:    p.passing && !p.helper,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		// All that is logged is what the runner says when it cannot go on.
		LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "100k", "max-file": "1"}},
		Mounts: []mount.Mount{bind.Workspace(p.Folder, p.volume, volumeLabels, p.passing, p.writes), {
			// Our own folder is a volume without a name, which lives as long as the
			// container: what is a mount cannot be moved away or replaced from inside.
			Type: mount.TypeVolume, Target: home,
		}},
	}
	if p.isRoot() {
		host.CapAdd = Capabilities
	}
	if !d.plain.Load() {
		// Engines leave IPv6 off without a network, but what listens on "localhost"
		// may well listen on ::1.
		host.Sysctls = map[string]string{"net.ipv6.conf.all.disable_ipv6": "0"}
	}
	if d.counted.Load() {
		host.Ulimits = append(host.Ulimits, &container.Ulimit{Name: "nproc", Soft: UserProcesses, Hard: UserProcesses})
	}
	if p.mounts {
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: d.runner(), Target: runnerPath, ReadOnly: true})
	}
	stores, args := p.stores()
	host.Mounts = append(host.Mounts, stores...)
	if d.about(ctx).unlimited && !p.Prepared { // a runner in an image may be older
		args = append(args, "--file-size", strconv.FormatInt(p.limits.Disk, 10))
	}
	for _, m := range p.Mounts {
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	if d.isPodman(ctx) {
		host.SecurityOpt = append(host.SecurityOpt, "mask="+strings.Join(Masked, ":")) // it ignores MaskedPaths
		if err := d.help(ctx, p, volumeLabels); err != nil {
			return "", err
		}
	}
	// Making it is fast, so it is not cancelled in the middle: otherwise it would be unknown
	// whether it was made.
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	made, err := d.engine.ContainerCreate(whole, client.ContainerCreateOptions{
		Name: p.name,
		Config: &container.Config{
			Image:      p.Image,
			Hostname:   "sandbox",
			User:       p.user(),
			Env:        p.folderEnv(),
			WorkingDir: sandbox.Workspace,
			Entrypoint: []string{p.program},
			Cmd: append([]string{
				"serve", "--socket", socketPath, "--state", statePath, "--output", outputPath,
				"--workspace", sandbox.Workspace, "--network", network,
			}, args...),
			Labels:      labels,
			StopSignal:  "SIGTERM",
			StopTimeout: &grace,
			// An image's own check would run its program beside the runner, again and again.
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: host,
	})
	if err != nil {
		return "", err
	}
	for _, w := range made.Warnings {
		d.log.Debug("the container engine warns", "container", p.name, "warning", w)
	}
	return made.ID, nil
}

// generationOf reads the generation off a label.
func generationOf(labels map[string]string) int {
	n, err := strconv.Atoi(labels[names.Generation])
	if err != nil {
		return 0
	}
	return n
}
