package docker_test

import (
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/sandboxtest"
)

// suite is the driver with the real runner, for what every driver must pass.
func suite(t *testing.T, changes ...string) sandboxtest.Options {
	host, image := dockertest.Engine(t), dockertest.BusyboxImage(t, changes...)
	engine := dockertest.Client(t)
	prefix := func(t *testing.T) string { return "deckhand-" + sandboxtest.Name(t) }
	return sandboxtest.Options{
		New: func(t *testing.T, out sandbox.Outward) sandbox.Driver {
			d, err := docker.New(docker.Options{
				Host: host, Runner: sandboxtest.Runner(t), Image: image,
				Prefix: prefix(t), Instance: sandboxtest.Name(t), Outward: out,
			})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Confined: true, Limits: true, Disk: true, Shell: "sh", NoGit: true, Folders: true,
		Kill: func(t *testing.T, h sandbox.Handle) {
			name := prefix(t) + "-" + h.ID
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

func TestSuite(t *testing.T) { sandboxtest.Run(t, suite(t)) }

func TestEscapes(t *testing.T) {
	o := suite(t)
	o.OpenFolder = true
	sandboxtest.Escapes(t, o)
}

// An image with a user of its own keeps that user off the runner's folder, too.
func TestEscapesOfAUser(t *testing.T) { sandboxtest.Escapes(t, suite(t, "USER 1000")) }
