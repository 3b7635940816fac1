// Package bind decides which folders of this machine can be mounted into containers.
package bind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
)

// Mount rejects mounts that would break a sandbox: ones that hide a folder that the sandbox needs itself (Workspace or home), and ones that
// contain the socket of the engine at address, because access to it is equivalent to root access to the machine.
func Mount(m sandbox.Mount, home, address string) error {
	target, source := filepath.Clean(m.Target), filepath.Clean(m.Source)
	if !filepath.IsAbs(target) || !filepath.IsAbs(source) {
		return unavailable("The mount of %q at %q does not name two absolute folders.", m.Source, m.Target)
	}
	for _, own := range []string{sandbox.Workspace, home} {
		if sandbox.Within(own, target) || own == home && sandbox.Within(target, own) {
			return unavailable("Nothing can be mounted at %s: the sandbox needs %s itself.", m.Target, own)
		}
	}
	sources := []string{source}
	if real, err := filepath.EvalSymlinks(source); err == nil {
		sources = append(sources, real)
	}
	if holdsSocket(address, sources...) {
		return unavailable("%s cannot be mounted: it holds the socket of the container engine.", m.Source)
	}
	return nil
}

// Folder returns the real path of a folder that is to be a workspace, or says why it cannot be one. local is true if the engine at address is
// reached by a socket of this machine.
func Folder(folder, address string, local bool) (string, error) {
	refuse := func(why string) (string, error) {
		return "", unavailable("A sandbox cannot work in %s: %s.", folder, why)
	}
	if !local {
		return refuse("the container engine at " + address + " may be on another machine. Use an engine of this machine, or run deckhand on the machine of the engine")
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return refuse(err.Error())
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return refuse(err.Error())
	case !info.IsDir() || !filepath.IsAbs(real):
		return refuse("it is not a folder")
	case real == "/":
		return refuse("it is the whole machine")
	case holdsSocket(address, real):
		return refuse("it contains the socket of the container engine")
	}
	return real, nil
}

// Sees reports whether a container that was created would work in a folder of this machine, and not in another one at the same path: the
// engine may have its own file system.
func Sees(ctx context.Context, engine *client.Client, container, folder string) bool {
	for range 3 { // it may be changing
		here, err := os.Stat(folder)
		if err != nil {
			return false
		}
		there, err := engine.ContainerStatPath(ctx, container, client.ContainerStatPathOptions{Path: sandbox.Workspace})
		if err != nil || there.Stat.Mtime.Unix() == here.ModTime().Unix() {
			return true // or starting the container returns the error
		}
	}
	return false
}

// Inaccessible reports whether an engine said that it may not open the folder of a container. A rootless engine has only the rights of its
// user.
func Inaccessible(said, folder string) bool {
	return strings.Contains(said, "permission denied") && (strings.Contains(said, `"`+sandbox.Workspace+`"`) || strings.Contains(said, folder))
}

// Workspace returns the mount of a workspace: a folder, or a volume with labels. The mount of a temporary container is read-only unless it
// writes.
func Workspace(folder, volume string, labels map[string]string, temporary, writes bool) mount.Mount {
	m := mount.Mount{Type: mount.TypeBind, Source: folder, Target: sandbox.Workspace, ReadOnly: temporary && !writes}
	if folder == "" {
		m.Type, m.Source = mount.TypeVolume, volume
		m.VolumeOptions = &mount.VolumeOptions{Labels: labels, NoCopy: temporary}
	}
	return m
}

// User returns the user, as UID:GID, whose files in a folder belong to the user of this process. In a rootless engine, that is root.
func User(rootless bool) string {
	if rootless {
		return "0:0"
	}
	return fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
}

// holdsSocket reports whether one of the folders contains the socket of a container engine.
func holdsSocket(address string, folders ...string) bool {
	sockets := []string{"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"}
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		sockets = append(sockets, filepath.Clean(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			sockets = append(sockets, real)
		}
	}
	for _, socket := range sockets {
		for _, folder := range folders {
			if sandbox.Within(socket, folder) {
				return true
			}
		}
	}
	return false
}

func unavailable(format string, args ...any) error {
	return &sandbox.Unavailable{Reason: fmt.Sprintf(format, args...)}
}
