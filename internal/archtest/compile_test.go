package archtest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// fakeGo stands for the go command, which would compile for minutes.
const fakeGo = `#!/bin/bash
case $1 in
list) printf 'not installed but available in build cache\nstale dependency: a\n\nnot installed\nstale dependency: b\n' ;;
build) printf 'example.com/a\nexample.com/b/v2\n# example.com/c\nc.go:1:2: wrong word\n' >&2; printf '%s\n' "$*" >"$SAID"; exit 3 ;;
esac
`

// TestCompileShowsProgress runs scripts/compile, which make run builds with.
func TestCompileShowsProgress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755); err != nil {
		t.Fatal(err)
	}
	said := filepath.Join(dir, "said")
	compile := func(env ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(root(t), "scripts/compile"), "bin/x", "-ldflags", "-s -w", "./cmd/x")
		cmd.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SAID=" + said, "TERM=xterm"}, env...)
		return cmd
	}

	shown := onTerminal(t, compile())
	for _, want := range []string{"compiling: 1 of 3 packages", "compiling: 2 of 3 packages", "# example.com/c\r\n", "c.go:1:2: wrong word\r\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is missing in %q", want, shown)
		}
	}
	if args, _ := os.ReadFile(said); string(args) != "build -v -o bin/x -ldflags -s -w ./cmd/x\n" {
		t.Errorf("built with %q", args)
	}

	var plain bytes.Buffer
	cmd := compile()
	cmd.Stderr = &plain
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("without a terminal it ended with %v", err)
	}
	for name, got := range map[string]string{"without a terminal": plain.String(), "under CI": strings.ReplaceAll(onTerminal(t, compile("CI=true")), "\r", "")} {
		if want := "example.com/a\nexample.com/b/v2\n# example.com/c\nc.go:1:2: wrong word\n"; got != want {
			t.Errorf("%s it said %q", name, got)
		}
	}
}

// onTerminal runs a command that must fail with 3, and returns what the terminal shows.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	shown, _ := io.ReadAll(terminal) // reading ends with an error when the command has gone
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("it ended with %v", err)
	}
	return string(shown)
}
