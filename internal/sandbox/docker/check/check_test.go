package check

import (
	"errors"
	"strings"
	"testing"

	"deckhand/internal/sandbox/docker/words"
)

// The fix depends on why the engine does not answer, and is said once.
func TestEngineThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ address, cause, fix string }{
		{"unix:///run/docker.sock", "dial unix /run/docker.sock: connect: permission denied", "usermod -aG docker USER"},
		{"unix:///var/run/docker.sock", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "Start Docker or Podman"},
		{"unix:///run/docker.sock", "dial unix /run/docker.sock: connect: connection refused", "Start the container engine that listens on unix:///run/docker.sock, or correct --docker-host"},
		{"tcp://a:2376", "dial tcp: connection refused", "listens on a:2376, and that no firewall is in between. With TLS (usually port 2376), set the folder of the certificates: tcp://a:2376?certs=DIR"},
		{"ssh://me@a:23/run/docker.sock", "me@a: Permission denied (publickey).", "run: ssh -p 23 me@a docker version;"},
	} {
		f := unanswered(c.address, words.Words{Address: c.address}.Unreachable(errors.New(c.cause)))
		if !f.Fatal || !strings.HasPrefix(c.cause, f.Found) || strings.Contains(f.Found, "?") || !strings.Contains(f.Fix, c.fix) || !strings.Contains(f.What, c.address) {
			t.Errorf("%q: %+v", c.cause, f)
		}
	}
}
