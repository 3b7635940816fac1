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
	at := words.Words{Address: "unix:///run/docker.sock"}
	for cause, fix := range map[string]string{
		"dial unix /run/docker.sock: connect: permission denied":                          "usermod -aG docker USER",
		"Cannot connect to the Docker daemon at tcp://a:1. Is the docker daemon running?": "Start Docker or Podman",
	} {
		f := unanswered("container engine", at.Unreachable(errors.New(cause)))
		if !f.Fatal || !strings.HasPrefix(cause, f.Found) || strings.Contains(f.Found, "?") || !strings.Contains(f.Fix, fix) {
			t.Errorf("%q: %+v", cause, f)
		}
	}
}
