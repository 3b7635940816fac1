package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
)

// unavailable says why a sandbox cannot be had. What the engine answered is
// part of it: it names the layer, the folder or the limit in question.
func unavailable(cause error, format string, args ...any) error {
	return &sandbox.Unavailable{Reason: fmt.Sprintf(format, args...), Cause: cause}
}

// unreachable is what there is to say when the engine does not answer.
func (d *Driver) unreachable(err error) error {
	return unavailable(err, "Cannot reach the container engine at %s: %s. Start it, set --docker-host, or use another --sandbox.",
		d.engine.Address, brief(err))
}

// isOver reports an error that is about our own patience, not about the engine.
func isOver(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// startWords turns what the engine said about a container that it could not make
// or start into words for a person.
func (d *Driver) startWords(err error, s shape) error {
	if isOver(err) {
		return err
	}
	if client.IsErrConnectionFailed(err) {
		return d.unreachable(err)
	}
	var known *sandbox.Unavailable
	if errors.As(err, &known) {
		return err
	}
	said := brief(err)
	switch {
	case holds(said, "exec format error"):
		return unavailable(err, "The image %s is for another CPU architecture than this server: %s", s.Image, said)
	case s.Prepared && isMissingProgram(err):
		return unavailable(err, "The image %s has no runner, neither at %s nor as %s in its PATH. Use it as the base image instead, and Deckhand adds the runner.", s.Image, runnerPath, preparedName)
	case holds(said, "unable to find user", "unknown user", "no matching entries in passwd", "no matching entries in group", "unable to find group"):
		return unavailable(err, "The user for the sandbox does not exist in the image %s: %s", s.Image, said)
	case holds(said, "bind source path does not exist", "no such file or directory") && holds(said, "mount"):
		return unavailable(err, "A folder to mount into the sandbox does not exist: %s", said)
	case holds(said, "no space left on device"):
		return unavailable(err, "The disk of the container engine is full. Remove unused images, or delete conversations.")
	}
	return unavailable(err, "A container of the image %s could not be started: %s", s.Image, said)
}

// pullWords does the same for an image that could not be pulled.
func (d *Driver) pullWords(err error, image string) error {
	if isOver(err) {
		return err
	}
	if client.IsErrConnectionFailed(err) {
		return d.unreachable(err)
	}
	said := brief(err)
	switch {
	case holds(said, "invalid reference format", "repository name must be", "invalid checksum digest"):
		return unavailable(err, "%q is not the name of an image: %s", image, said)
	case errdefs.IsNotFound(err), errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err),
		holds(said, "manifest unknown", "repository does not exist", "not found", "unauthorized", "authentication required", "no basic auth credentials", "denied", "forbidden"):
		return unavailable(err, "The image %s does not exist or needs a login: %s. Check its name. For a private registry, run docker login as the user of the server, or pull the image on the machine of the container engine.", image, said)
	case holds(said, "dial tcp", "no such host", "connection refused", "i/o timeout", "timeout exceeded", "tls handshake", "network is unreachable", "server misbehaving"):
		return unavailable(err, "The registry of the image %s cannot be reached: %s", image, said)
	case holds(said, "no space left on device"):
		return unavailable(err, "The disk of the container engine is full: the image %s could not be stored. Remove unused images, or delete conversations.", image)
	}
	return unavailable(err, "The image %s could not be pulled: %s", image, said)
}

// isMissingProgram reports a container that could not start because its program is not in its
// image.
func isMissingProgram(err error) bool {
	said := brief(err)
	return holds(said, "executable file not found", "executable file `") ||
		holds(said, "no such file or directory", "not a directory") && holds(said, runnerPath, preparedName)
}

func holds(said string, any ...string) bool {
	said = strings.ToLower(said)
	for _, s := range any {
		if strings.Contains(said, strings.ToLower(s)) {
			return true
		}
	}
	return false
}

// brief takes the engine's own words out of an error, in one line.
func brief(err error) string {
	said := err.Error()
	for _, before := range []string{"Error response from daemon: ", "Error: "} {
		said = strings.ReplaceAll(said, before, "")
	}
	said = clip.Line(said)
	said = strings.TrimSuffix(strings.TrimSuffix(said, "."), ": unknown")
	return clip.Bytes(said, 500)
}
