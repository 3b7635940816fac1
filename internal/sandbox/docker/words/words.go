// Package words turns the errors of container engines into messages for users, and tells what they mean: Podman says many things
// otherwise than Docker.
package words

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
)

// Where the runner is in a container, and what an image that brings it along may call it in its PATH.
const (
	RunnerPath   = "/.deckhand/runner"
	PreparedName = "deckhand-runner"
)

// Words are the messages about one engine.
type Words struct {
	// Address is the address of the engine.
	Address string
	// Log gets what users must not see.
	Log *slog.Logger
}

// Unavailable says why a sandbox cannot be had. What the engine answered is
// part of it: it names the layer, the folder or the limit in question.
func Unavailable(cause error, format string, args ...any) error {
	return &sandbox.Unavailable{Reason: fmt.Sprintf(format, args...), Cause: cause}
}

// Unreachable is what there is to say when the engine does not answer.
func (w Words) Unreachable(err error) error {
	return Unavailable(err, "Cannot reach the container engine at %s: %s. Start it, set --docker-host, or use another --sandbox.",
		w.Address, Brief(err))
}

// IsOver reports an error that is about our own patience, not about the engine.
func IsOver(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Start turns what the engine said about a container that it could not make
// or start into words for a person.
func (w Words) Start(err error, image string, prepared bool) error {
	if IsOver(err) {
		return err
	}
	if client.IsErrConnectionFailed(err) {
		return w.Unreachable(err)
	}
	var known *sandbox.Unavailable
	if errors.As(err, &known) {
		return err
	}
	said := Brief(err)
	switch {
	case Holds(said, "exec format error"):
		return Unavailable(err, "The image %s is for another CPU architecture than this server: %s", image, said)
	case prepared && IsMissingProgram(err):
		return Unavailable(err, "The image %s has no runner, neither at %s nor as %s in its PATH. Use it as the base image instead, and Deckhand adds the runner.", image, RunnerPath, PreparedName)
	case Holds(said, "unable to find user", "unknown user", "no matching entries in passwd", "no matching entries in group", "unable to find group"):
		return Unavailable(err, "The user for the sandbox does not exist in the image %s: %s", image, said)
	case Holds(said, "bind source path does not exist", "no such file or directory") && Holds(said, "mount") && !Holds(said, Storage):
		return Unavailable(err, "A folder to mount into the sandbox does not exist: %s", said)
	case Holds(said, "no space left on device"):
		return Unavailable(err, "The disk of the container engine is full. Remove unused images, or delete conversations.")
	}
	return Unavailable(err, "A container of the image %s could not be started: %s", image, said)
}

// Pull does the same for an image that could not be pulled. Users choose registries, so what a registry answered and the addresses
// that the engine connected to are for the log only.
func (w Words) Pull(err error, image string) error {
	if IsOver(err) {
		return err
	}
	if client.IsErrConnectionFailed(err) {
		return w.Unreachable(err)
	}
	if known, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return known
	}
	said := Brief(err)
	w.Log.Warn("an image could not be pulled", "image", image, "engine", w.Address, "error", said)
	switch {
	case Holds(said, "invalid reference format", "repository name must be", "invalid checksum digest"):
		return pulled("%q is not the name of an image.", image)
	case errdefs.IsNotFound(err), errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err),
		Holds(said, "manifest unknown", "repository does not exist", "not found", "unauthorized", "authentication required", "no basic auth credentials", "denied", "forbidden"):
		return pulled("The image %s does not exist or needs a login. Check its name. For a private registry, run docker login as the user of the server, or pull the image on the machine of the container engine.", image)
	case Holds(said, "dial tcp", "no such host", "connection refused", "i/o timeout", "timeout exceeded", "tls handshake", "network is unreachable", "server misbehaving", "http: server gave", "x509:", "eof", "connection reset"):
		return pulled("The registry of the image %s cannot be reached. The log of the server has the reason.", image)
	case Holds(said, "no space left on device"):
		return pulled("The disk of the container engine is full: the image %s could not be stored. Remove unused images, or delete conversations.", image)
	}
	return pulled("The image %s could not be pulled. The log of the server has the reason.", image)
}

// pulled is an error without its cause, which could be shown to users.
func pulled(format string, args ...any) error { return Unavailable(nil, format, args...) }

// Says passes on an error that is about the engine rather than the sandbox.
func (w Words) Says(err error) error {
	if client.IsErrConnectionFailed(err) {
		return w.Unreachable(err)
	}
	return err
}

// Storage is part of Podman's errors about the file system of a container.
const Storage = "mounting storage for container"

// IsMissingProgram reports a container that could not start because its program is not in its
// image.
func IsMissingProgram(err error) bool {
	said := Brief(err)
	return Holds(said, "executable file not found", "executable file `") ||
		Holds(said, "no such file or directory", "not a directory") && Holds(said, RunnerPath, PreparedName)
}

// Holds reports whether a message has one of the parts, in capitals or not.
func Holds(said string, any ...string) bool {
	said = strings.ToLower(said)
	for _, s := range any {
		if strings.Contains(said, strings.ToLower(s)) {
			return true
		}
	}
	return false
}

// Brief takes the engine's own words out of an error, in one line and without advice: that comes from us.
func Brief(err error) string {
	said := err.Error()
	for _, before := range []string{"Error response from daemon: ", "Error: "} {
		said = strings.ReplaceAll(said, before, "")
	}
	said = clip.Line(said)
	for _, advice := range []string{". Is the docker daemon running?", "; check if the path is correct and if the daemon is running"} {
		said = strings.ReplaceAll(said, advice, "")
	}
	said = strings.TrimSuffix(strings.TrimSuffix(said, "."), ": unknown")
	return clip.Bytes(said, 500)
}

// IsExisting reports whether a volume could not be created because it exists.
func IsExisting(err error) bool {
	return errdefs.IsConflict(err) || Holds(Brief(err), "already exists")
}

// IsTaken reports that there is a container of that name. Podman calls it an
// error of its own.
func IsTaken(err error) bool {
	return err != nil && (errdefs.IsConflict(err) || Holds(Brief(err), "is already in use"))
}

// IsAsleep reports that a container does not run or is paused.
func IsAsleep(err error) bool {
	return err != nil && (errdefs.IsConflict(err) || Holds(Brief(err), "container state improper"))
}

// IsNotThere reports that the engine does not know what it was asked about.
// Podman says it otherwise when the container goes while it is looked at.
func IsNotThere(err error) bool {
	return err != nil && (errdefs.IsNotFound(err) || Holds(Brief(err), "no such container"))
}
