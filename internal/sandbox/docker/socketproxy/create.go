package socketproxy

import (
	"reflect"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/volume"

	"deckhand/internal/sandbox/docker"
)

// prefix starts the names of containers and volumes of the docker driver.
const prefix = "deckhand"

func missing(err error) bool { return errdefs.IsNotFound(err) }

// create is a request to create a container.
type create container.CreateRequest

// check refuses containers that reach more than their own files. Fields that are not named here must be absent or null: for
// some of them, such as ReadonlyPaths, an empty list means something else to the engine.
func (c *create) check(name string) error {
	switch {
	case c.Config == nil || c.HostConfig == nil:
		return refused("a container needs a configuration")
	case !ourName(name):
		return refused("the name of a container must start with %s-", prefix)
	case c.Labels[label] != "1":
		return refused("a container must have the label %s=1", label)
	case !image.MatchString(c.Image):
		return refused("%q is not the name of an image", c.Image)
	case c.NetworkingConfig != nil && len(c.NetworkingConfig.EndpointsConfig) > 0:
		return refused("a container must not have a network")
	case c.Healthcheck != nil && !slices.Equal(c.Healthcheck.Test, []string{"NONE"}):
		return refused("a container must not have a health check")
	}
	c.NetworkingConfig = nil
	given := *c.Config
	config := &container.Config{
		Image: given.Image, Hostname: given.Hostname, User: given.User, WorkingDir: given.WorkingDir, Entrypoint: given.Entrypoint, Cmd: given.Cmd,
		Labels: given.Labels, StopSignal: given.StopSignal, StopTimeout: given.StopTimeout,
	}
	if given.Healthcheck != nil {
		config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	}
	given.Image, given.Hostname, given.User, given.WorkingDir, given.Entrypoint, given.Cmd = "", "", "", "", nil, nil
	given.Labels, given.StopSignal, given.StopTimeout, given.Healthcheck = nil, "", nil, nil
	if err := empty(reflect.ValueOf(given)); err != nil {
		return err
	}
	host, err := checkHost(*c.HostConfig)
	c.Config, c.HostConfig = config, host
	return err
}

// checkHost returns the allowed fields of the configuration of a host.
func checkHost(h container.HostConfig) (*container.HostConfig, error) {
	switch {
	case h.NetworkMode != "none":
		return nil, refused("the network mode of a container must be none")
	case !slices.Equal(h.CapDrop, []string{"ALL"}):
		return nil, refused("a container must drop all capabilities")
	case h.CapAdd != nil && !slices.Equal(h.CapAdd, docker.Capabilities):
		return nil, refused("a container must have the capabilities of the docker driver, and no others")
	case !slices.Equal(h.SecurityOpt, []string{"no-new-privileges"}):
		return nil, refused("a container must have the security option no-new-privileges, and no other")
	case !slices.Equal(h.MaskedPaths, docker.Masked):
		return nil, refused("the masked paths of a container must be those of the docker driver")
	case h.ShmSize < 0 || h.ShmSize > docker.SharedBytes:
		return nil, refused("the shared memory of a container must have at most %d bytes", docker.SharedBytes)
	case h.OomScoreAdj < 0:
		return nil, refused("oom_score_adj must not be negative")
	case h.LogConfig.Type != "json-file" && h.LogConfig.Type != "":
		return nil, refused("the log driver must be json-file")
	}
	for option := range h.LogConfig.Config {
		if option != "max-size" && option != "max-file" {
			return nil, refused("the option %s of the log driver must not be set", option)
		}
	}
	for _, m := range h.Mounts {
		if err := checkMount(m); err != nil {
			return nil, err
		}
	}
	for name := range h.Sysctls {
		if name != "net.ipv6.conf.all.disable_ipv6" {
			return nil, refused("the kernel parameter %s must not be set", name)
		}
	}
	limits, err := checkResources(h.Resources)
	if err != nil {
		return nil, err
	}
	if err := checkRestart(h.RestartPolicy); err != nil {
		return nil, err
	}
	allowed := &container.HostConfig{
		NetworkMode: h.NetworkMode, CapDrop: h.CapDrop, CapAdd: h.CapAdd, SecurityOpt: h.SecurityOpt, MaskedPaths: h.MaskedPaths, OomScoreAdj: h.OomScoreAdj,
		LogConfig: h.LogConfig, Mounts: h.Mounts, Sysctls: h.Sysctls, Resources: limits, ShmSize: h.ShmSize, Init: h.Init, AutoRemove: h.AutoRemove,
		RestartPolicy: h.RestartPolicy,
	}
	h.NetworkMode, h.CapDrop, h.CapAdd, h.SecurityOpt, h.MaskedPaths, h.OomScoreAdj, h.LogConfig, h.Mounts, h.Sysctls = "", nil, nil, nil, nil, 0, container.LogConfig{}, nil, nil
	h.Resources, h.ShmSize, h.Init, h.AutoRemove, h.RestartPolicy = container.Resources{}, 0, nil, false, container.RestartPolicy{}
	return allowed, empty(reflect.ValueOf(h))
}

// ourName reports names of containers and volumes of the driver.
func ourName(s string) bool { return strings.HasPrefix(s, prefix+"-") && name.MatchString(s) }

// checkMount allows volumes with a name of the driver, and volumes without a name.
func checkMount(m mount.Mount) error {
	if m.Type != mount.TypeVolume {
		return refused("the %s mount of %s is not allowed; only volumes can be mounted", m.Type, m.Source)
	}
	if m.Source != "" && !ourName(m.Source) {
		return refused("the volume %s was not created by Deckhand", m.Source)
	}
	if o := m.VolumeOptions; o != nil && (o.DriverConfig != nil || o.Subpath != "") {
		return refused("a volume must not have options of its driver")
	}
	if m.BindOptions != nil || m.ImageOptions != nil || m.TmpfsOptions != nil || m.ClusterOptions != nil || m.Consistency != "" {
		return refused("a volume must not have options of other mounts")
	}
	return nil
}

// maxUlimits are the limits of processes that a container may have, and their maximum values; 0 for any.
var maxUlimits = map[string]int64{"nofile": docker.OpenFiles, "nproc": docker.UserProcesses, "core": 0, "fsize": 0}

// checkResources returns the limits. A container must have limits of memory and processes, because the server sets them for every sandbox.
// Devices are refused.
func checkResources(r container.Resources) (container.Resources, error) {
	switch {
	case r.Memory <= 0 || r.MemorySwap != r.Memory:
		return r, refused("a container must have a memory limit, and no swap")
	case r.PidsLimit == nil || *r.PidsLimit <= 0:
		return r, refused("a container must have a limit of processes")
	case r.CPUQuota < 0:
		return r, refused("the CPU quota must not be negative")
	}
	for _, u := range r.Ulimits {
		most, ok := maxUlimits[u.Name]
		if !ok || u.Hard < 0 || u.Soft > u.Hard || most > 0 && u.Hard > most || u.Name == "core" && u.Hard != 0 {
			return r, refused("the ulimit %s of a container is not allowed", u.Name)
		}
	}
	limits := container.Resources{
		Memory: r.Memory, MemorySwap: r.MemorySwap, CPUPeriod: r.CPUPeriod, CPUQuota: r.CPUQuota, PidsLimit: r.PidsLimit, Ulimits: r.Ulimits,
	}
	r.Memory, r.MemorySwap, r.CPUPeriod, r.CPUQuota, r.PidsLimit, r.Ulimits = 0, 0, 0, 0, nil, nil
	return limits, empty(reflect.ValueOf(r))
}

func checkRestart(r container.RestartPolicy) error {
	if r.Name != "" && r.Name != container.RestartPolicyDisabled || r.MaximumRetryCount != 0 {
		return refused("the restart policy must be no")
	}
	return nil
}

// checkUpdate allows to change limits.
func checkUpdate(u *container.UpdateConfig) error {
	if err := checkRestart(u.RestartPolicy); err != nil {
		return err
	}
	limits, err := checkResources(u.Resources)
	u.Resources = limits
	return err
}

// checkExec allows commands as the user of the container, or as that of the driver's connectors.
func checkExec(e *container.ExecCreateRequest) error {
	rest := *e
	if rest.User == docker.Connector {
		rest.User = ""
	}
	rest.AttachStdin, rest.AttachStdout, rest.AttachStderr, rest.WorkingDir, rest.Cmd = false, false, false, "", nil
	return empty(reflect.ValueOf(rest))
}

// checkExecStart allows to attach to a command.
func checkExecStart(e *container.ExecStartRequest) error { return empty(reflect.ValueOf(*e)) }

// checkVolume allows plain volumes: options of the local driver could mount folders of the machine.
func checkVolume(v *volume.CreateRequest) error {
	switch {
	case !ourName(v.Name):
		return refused("the name of a volume must start with %s-", prefix)
	case v.Labels[label] != "1":
		return refused("a volume must have the label %s=1", label)
	case v.Driver != "" && v.Driver != "local", v.DriverOpts != nil, v.ClusterVolumeSpec != nil:
		return refused("a volume must not have options of its driver")
	}
	return nil
}

// empty refuses structs with a field that is set. Empty lists and maps count as set.
func empty(v reflect.Value) error {
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			return refused("%s must not be set", v.Type().Field(i).Name)
		}
	}
	return nil
}
