package proxyenv

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestVariables(t *testing.T) {
	got := Variables(3128)
	for _, want := range []string{
		"http_proxy=http://127.0.0.1:3128", "HTTPS_PROXY=http://127.0.0.1:3128", "no_proxy=localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY=1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	if !slices.IsSorted(got) || len(got) != len(Env(3128)) {
		t.Errorf("got %q", got)
	}
}

// The runner is small because it imports little.
func TestImportsLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dep := range strings.Fields(string(out)) {
		if dep == "net" || dep == "fmt" || strings.HasPrefix(dep, "net/") || (strings.HasPrefix(dep, "deckhand/") && !strings.HasSuffix(dep, "/proxyenv")) {
			t.Errorf("proxyenv depends on %s", dep)
		}
	}
}
