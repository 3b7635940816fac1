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

// check refuses containers that reach more than their own files. Fields of the host that are not named here must be empty.
func (c *create) check(name string) error {
	switch {
	case c.Config == nil || c.HostConfig == nil:
		return refused("a container needs a configuration")
	case !strings.HasPrefix(name, prefix+"-"):
		return refused("the name of a container must start with %s-", prefix)
	case c.Labels[label] != "1":
		return refused("a container must have the label %s=1", label)
	case c.NetworkingConfig != nil && len(c.NetworkingConfig.EndpointsConfig) > 0:
		return refused("a container must not have a network")
	}
	c.NetworkingConfig = nil
	h := *c.HostConfig
	switch {
	case h.NetworkMode != "none":
		return refused("the network mode of a container must be none")
	case !slices.Equal(h.CapDrop, []string{"ALL"}):
		return refused("a container must drop all capabilities")
	case !slices.Equal(h.SecurityOpt, []string{"no-new-privileges"}):
		return refused("a container must have the security option no-new-privileges, and no other")
	case !slices.Equal(h.MaskedPaths, docker.Masked):
		return refused("the masked paths of a container must be those of the docker driver")
	case h.OomScoreAdj < 0:
		return refused("oom_score_adj must not be negative")
	case h.LogConfig.Type != "json-file" && h.LogConfig.Type != "":
		return refused("the log driver must be json-file")
	}
	for _, m := range h.Mounts {
		if err := checkMount(m); err != nil {
			return err
		}
	}
	for name := range h.Sysctls {
		if name != "net.ipv6.conf.all.disable_ipv6" {
			return refused("the kernel parameter %s must not be set", name)
		}
	}
	if err := checkResources(h.Resources); err != nil {
		return err
	}
	h.NetworkMode, h.CapDrop, h.SecurityOpt, h.MaskedPaths, h.OomScoreAdj, h.LogConfig, h.Mounts, h.Sysctls = "", nil, nil, nil, 0, container.LogConfig{}, nil, nil
	h.Resources, h.ShmSize, h.Init, h.AutoRemove, h.RestartPolicy = container.Resources{}, 0, nil, false, container.RestartPolicy{}
	return empty(reflect.ValueOf(h))
}

// checkMount allows volumes of the driver, and volumes without a name.
func checkMount(m mount.Mount) error {
	if m.Type != mount.TypeVolume {
		return refused("the %s mount of %s is not allowed; only volumes can be mounted", m.Type, m.Source)
	}
	if m.Source != "" && (!strings.HasPrefix(m.Source, prefix+"-") || !name.MatchString(m.Source)) {
		return refused("the volume %s is not one of Deckhand", m.Source)
	}
	if o := m.VolumeOptions; o != nil && (o.DriverConfig != nil || o.Subpath != "") {
		return refused("a volume must not have options of its driver")
	}
	if m.BindOptions != nil || m.ImageOptions != nil || m.TmpfsOptions != nil || m.ClusterOptions != nil {
		return refused("a volume must not have options of other mounts")
	}
	return nil
}

// checkResources allows limits, and no devices.
func checkResources(r container.Resources) error {
	r.Memory, r.MemorySwap, r.CPUPeriod, r.CPUQuota, r.PidsLimit, r.Ulimits = 0, 0, 0, 0, nil, nil
	return empty(reflect.ValueOf(r))
}

// checkUpdate allows to change limits.
func checkUpdate(u *container.UpdateConfig) error {
	if u.RestartPolicy.Name != "" && u.RestartPolicy.Name != container.RestartPolicyDisabled {
		return refused("the restart policy must not be changed")
	}
	return checkResources(u.Resources)
}

func checkExec(e *container.ExecCreateRequest) error {
	if e.Privileged {
		return refused("privileged commands are not allowed")
	}
	return nil
}

// checkVolume allows plain volumes: options of the local driver could mount folders of the machine.
func checkVolume(v *volume.CreateRequest) error {
	switch {
	case !strings.HasPrefix(v.Name, prefix+"-"):
		return refused("the name of a volume must start with %s-", prefix)
	case v.Labels[label] != "1":
		return refused("a volume must have the label %s=1", label)
	case v.Driver != "" && v.Driver != "local", len(v.DriverOpts) > 0, v.ClusterVolumeSpec != nil:
		return refused("a volume must not have options of its driver")
	}
	return nil
}

// empty refuses structs with a field that has a value.
func empty(v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Field(i)
		if none := field.IsZero() || (field.Kind() == reflect.Slice || field.Kind() == reflect.Map) && field.Len() == 0; !none {
			return refused("%s must not be set", v.Type().Field(i).Name)
		}
	}
	return nil
}
