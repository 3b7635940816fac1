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

// dropped are dependency trees that the server had and does without: each cost
// seconds of every first build and megabytes of the program.
// docs/decisions/0040-fewer-dependency-trees.md has the numbers.
var dropped = []string{
	"github.com/openai/openai-go", "github.com/anthropics/anthropic-sdk-go", "google.golang.org/genai", "google.golang.org/grpc",
	"cloud.google.com/go", "github.com/googleapis", "github.com/google/s2a-go",
}

// inTree reports whether a package is in the tree below a path.
func inTree(pkg, path string) bool { return pkg == path || strings.HasPrefix(pkg, path+"/") }

// TestDroppedTreesStayAway asks the compiler what the server is made of.
func TestDroppedTreesStayAway(t *testing.T) {
	for _, dep := range deps(t, "./cmd/deckhand") {
		for _, tree := range dropped {
			if inTree(dep, tree) {
				t.Errorf("the server contains %s again; docs/decisions/0040-fewer-dependency-trees.md says what it costs and what we use instead", dep)
			}
		}
	}
	if !inTree("google.golang.org/genai/tokenizer", "google.golang.org/genai") || inTree("google.golang.org/genaix", "google.golang.org/genai") {
		t.Error("a tree is not told from its neighbours")
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
