package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/soak"
)

// ordinary is a user that no machine has.
const ordinary = 54321

// TestAsOrdinaryUser runs all other tests once more, by a user without rights.
func TestAsOrdinaryUser(t *testing.T) {
	soak.NotShort(t, "starts sandboxes")
	if os.Geteuid() != 0 {
		return // we are one
	}
	dir, err := os.MkdirTemp("", "user")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "test")
	copyFile(t, os.Args[0], program)
	copyFile(t, runnerFile, filepath.Join(dir, "runner"))
	home := filepath.Join(dir, "tmp")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, ordinary, ordinary); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.v", "-test.timeout=20m", "-test.skip=^(TestSuite|TestEscapes)"} // TestSuiteAsUser runs these
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + home, "HOME=" + home, "CI=" + os.Getenv("CI"), runnerEnv + "=" + filepath.Join(dir, "runner")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "=== ") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
	if err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(out), "--- PASS: TestLife") {
		t.Error("nothing was tried")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	program, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.PutProgram(t, to, program)
}
