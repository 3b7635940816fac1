package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deckhand/internal/sandbox/docker/dockertest"
)

var bashBlock = regexp.MustCompile("(?ms)^```bash\n(.*?)^```$")

// blocks are the shell blocks of a page, in order, as one script.
func blocks(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, found := range bashBlock.FindAllStringSubmatch(string(text), -1) {
		all = append(all, found[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no shell blocks", page)
	}
	return strings.Join(all, "")
}

// The commands of the page work as they stand there, one after the other.
func TestFirstStepsWithTheAPI(t *testing.T) {
	t.Parallel()
	needLocal(t)
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			dockertest.Missing(t, tool+" is not installed")
		}
	}
	b := serve(t, "", "--sandbox", "local")
	t.Cleanup((&person{box: b}).dropAll)
	script := blocks(t, "docs/first-steps.md")
	home := t.TempDir()
	for from, to := range map[string]string{"http://127.0.0.1:3000": b.base, "~/.local/share/deckhand/admin.key": filepath.Join(b.dir, "admin.key")} {
		if !strings.Contains(script, from) {
			t.Fatalf("%s is not in the commands", from)
		}
		script = strings.ReplaceAll(script, from, to)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	holds(t, string(out), `"message": "Settings stored"`, `"agent_state"`, `"kind":"user_said"`, `"log.txt"`, `"conversation_status": "STOPPED"`, "\n404\n")
}

// The first task of the README works in any folder.
func TestFirstTaskOfTheReadme(t *testing.T) {
	t.Parallel()
	needLocal(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(programFile(), filepath.Join(dir, "bin", "deckhand")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", blocks(t, "README.md"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME="+t.TempDir(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	holds(t, string(out), "failed: 2 + 3 = -1", "ok: 2 + 3 = 5", "Add numbers in total")
	if text, err := os.ReadFile(filepath.Join(dir, "deckhand-demo", "total.sh")); err != nil || !strings.Contains(string(text), "$1 + $2") {
		t.Errorf("%q %v", text, err)
	}
}
