package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// heavy is what the runner must not contain: each costs megabytes in every sandbox.
var heavy = []string{"net/http", "crypto/tls", "deckhand/internal/session", "deckhand/internal/sandbox/docker", "github.com/danielgtaylor/huma/v2"}

// TestRunnerIsSmall asks the compiler what the runner is made of.
func TestRunnerIsSmall(t *testing.T) {
	for _, dep := range deps(t, "./cmd/runner") {
		if slices.Contains(heavy, dep) {
			t.Errorf("the runner contains %s; it runs once in every sandbox, so find a way without", dep)
		}
	}
}

// TestHeavyIsSeen shows that the check can fail.
func TestHeavyIsSeen(t *testing.T) {
	all := deps(t, "./cmd/deckhand")
	if !slices.Contains(all, "net/http") || !slices.Contains(all, "deckhand/internal/session") {
		t.Error("what the server is made of is not seen")
	}
}

func deps(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", pkg)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
