// Package check checks a container engine for deckhand doctor.
package check

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/moby/moby/client"

	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/connect"
	"deckhand/internal/sandbox/docker/words"
)

// Engine is an engine and what the docker driver uses with it.
type Engine struct {
	connect.Engine
	// Runner is the path of the runner, and Image the default image.
	Runner, Image string
	// Answers fails if the engine does not answer.
	Answers func(context.Context) error
	// HasImage reports whether the engine has the image.
	HasImage func(context.Context) (bool, error)
}

// unanswered is the finding about an engine that does not answer.
func unanswered(address string, err error) sandbox.Finding {
	f := sandbox.Finding{Fatal: true, What: at(address), Found: err.Error(), Fix: startFix(address)}
	if u := (*sandbox.Unavailable)(nil); errors.As(err, &u) && u.Cause != nil { // which advises the same as the fix
		f.Found = words.Brief(u.Cause)
	}
	if strings.HasPrefix(address, "unix:") && words.Holds(f.Found, "permission denied") {
		f.Fix = "Give the user who runs the server access to the socket of the engine, such as with: usermod -aG docker USER; then restart the server."
	}
	return f
}

func at(address string) string { return "container engine at " + address }

// startFix says what to do about an engine that does not answer.
func startFix(address string) string {
	if address == client.DefaultDockerHost {
		return "Start Docker or Podman, or set --docker-host."
	}
	const correct = ", or correct --docker-host (or DOCKER_HOST)."
	u, err := url.Parse(address)
	switch {
	case err == nil && u.Scheme == "ssh":
		host := u.Hostname()
		if name := u.User.Username(); name != "" {
			host = name + "@" + host
		}
		if u.Port() != "" {
			host = "-p " + u.Port() + " " + host
		}
		return "As the user of the server, run: ssh " + host + " docker version; it must work without a password or a question" + correct
	case err == nil && u.Scheme == "tcp":
		return "Check that the engine is running and listens on " + u.Host + ", and that no firewall is in between. With TLS (usually port 2376), set the folder of the certificates: tcp://" + u.Host + "?certs=DIR, or DOCKER_CERT_PATH" + correct
	}
	return "Start the container engine that listens on " + address + correct
}

// Check asks the engine what it can do, and looks for the runner and the image.
func (e Engine) Check(ctx context.Context) []sandbox.Finding {
	what := at(e.Address)
	if err := e.Answers(ctx); err != nil {
		return []sandbox.Finding{unanswered(e.Address, err)}
	}
	got, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return []sandbox.Finding{{Fatal: true, What: what, Found: clip.Line(err.Error()), Fix: "Check the log of the container engine."}}
	}
	info := got.Info
	found := []sandbox.Finding{{
		OK: true, What: what,
		Found: fmt.Sprintf("version %s, API %s, storage %s, cgroup v%s", info.ServerVersion, e.ClientVersion(), info.Driver, info.CgroupVersion),
	}}
	if e.Plain {
		found = append(found, sandbox.Finding{What: "connection", Found: "not encrypted: anyone who can read the traffic or connect to this port controls the machine of the engine",
			Fix: "Use TLS (DOCKER_CERT_PATH), ssh:// or a unix socket."})
	}
	for _, limit := range []struct {
		name string
		ok   bool
	}{
		{"memory", info.MemoryLimit}, {"processor", info.CPUCfsQuota}, {"process", info.PidsLimit},
	} {
		f := sandbox.Finding{OK: limit.ok, What: limit.name + " limit", Found: "can be set"}
		if !limit.ok {
			f.Found = "not supported by the engine: one sandbox could use all of the machine"
			f.Fix = "Let the engine use this cgroup controller; rootless engines need systemd delegation."
		}
		found = append(found, f)
	}
	seccomp := sandbox.Finding{What: "system call filter", Found: "the engine has none", Fix: "Use an engine and a kernel with seccomp."}
	for _, option := range info.SecurityOptions {
		if strings.Contains(option, "seccomp") && !strings.Contains(option, "unconfined") {
			seccomp = sandbox.Finding{OK: true, What: seccomp.What, Found: "on"}
		}
	}
	return append(found, seccomp, e.checkRunner(), e.checkImage(ctx))
}

func (e Engine) checkRunner() sandbox.Finding {
	f := sandbox.Finding{What: "runner"}
	if e.Runner == "" {
		f.Found, f.Fix = "missing: only images that contain it can be used", "Give the driver the path of the runner."
		return f
	}
	info, err := os.Stat(e.Runner)
	switch {
	case err != nil:
		f.Fatal, f.Found, f.Fix = true, err.Error(), "Build it, or install the server anew."
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		f.Fatal, f.Found, f.Fix = true, e.Runner+" is not a program", "Make it executable, or install the server anew."
	default:
		f.OK, f.Found = true, e.Runner
	}
	return f
}

func (e Engine) checkImage(ctx context.Context) sandbox.Finding {
	f := sandbox.Finding{What: "default image"}
	if e.Image == "" {
		f.Found, f.Fix = "none: each user must set an image in the settings", "Set --sandbox-image."
		return f
	}
	here, err := e.HasImage(ctx)
	switch {
	case err != nil:
		f.Found, f.Fix = err.Error(), "Choose another image."
	case !here:
		f.OK, f.Found = true, e.Image+" is not pulled yet: the first sandbox waits for it"
	default:
		f.OK, f.Found = true, e.Image
	}
	return f
}
