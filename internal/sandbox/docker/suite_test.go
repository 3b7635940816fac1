package docker_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/connect"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/sandboxtest"
)

// suite is the driver with the real runner, for what every driver must pass.
func suite(t *testing.T, changes ...string) sandboxtest.Options {
	host, image := dockertest.Engine(t), dockertest.BusyboxImage(t, changes...)
	engine := dockertest.Client(t)
	called := func(t *testing.T) names.Names {
		return names.Names{Prefix: "deckhand-" + sandboxtest.Name(t), Instance: sandboxtest.Name(t)}
	}
	return sandboxtest.Options{
		New: func(t *testing.T, out sandbox.Outward) sandbox.Driver {
			d, err := docker.New(docker.Options{
				Host: host, Runner: sandboxtest.Runner(t), Image: image,
				Prefix: called(t).Prefix, Instance: called(t).Instance, Outward: out,
			})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Confined: true, Limits: limits(t, host), Disk: true, Connectors: true, Shell: "sh", NoGit: true, Folders: true, Foreign: foreign(t, host),
		Kill: func(t *testing.T, h sandbox.Handle) {
			name := called(t).Container(h.ID)[0]
			ended := engine.ContainerWait(t.Context(), name, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
			if _, err := engine.ContainerKill(t.Context(), name, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended.Result:
			case err := <-ended.Error:
				t.Fatal(err)
			}
		},
	}
}

// foreign reports whether an engine belongs to another user, by its socket.
func foreign(t *testing.T, host string) bool {
	t.Helper()
	info, err := os.Stat(strings.TrimPrefix(host, "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid()
}

// limits reports whether the engine can limit memory and processes. Only a rootless one may be unable to.
func limits(t *testing.T, host string) bool {
	t.Helper()
	engine, err := connect.Open(host)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	got, err := engine.Info(t.Context(), client.InfoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := got.Info.MemoryLimit && got.Info.PidsLimit && got.Info.CPUCfsQuota
	if !all && !strings.Contains(strings.Join(got.Info.SecurityOptions, " "), "rootless") {
		t.Errorf("an engine with root cannot limit: %+v", got.Info)
	}
	return all
}

func TestSuite(t *testing.T) { sandboxtest.Run(t, suite(t)) }

// Commands are root in their container, as the runner is, but have no capabilities.
func TestEscapes(t *testing.T) { sandboxtest.Escapes(t, suite(t)) }

// An image with a user of its own keeps that user off the runner's folder, too.
func TestEscapesOfAUser(t *testing.T) { sandboxtest.Escapes(t, suite(t, "USER 1000")) }
