package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/capacity"
	"deckhand/internal/soak"
)

// deckhand bench says how many agents the machine carries, and leaves nothing behind.
func TestBench(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "measures a server with sandboxes")
	if os.Getenv(builtProgram) == "" {
		t.Skip("SKIPPED: it starts itself as a server, so it needs the program and not the test; make test names it")
	}
	dir := t.TempDir()
	cmd := process("bench", "--dir", dir, "--duration", "1s", "--every", "5s", "--sandbox", "local", "--json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var r capacity.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if r.Agents < 1 || r.Every != 5 || len(r.Steps) == 0 || r.Steps[0].Rate <= 0 || r.Processor.PerTurn <= 0 || r.Memory.PerConversation <= 0 || r.Disk.PerTurn <= 0 || r.Disk.FlushMillis <= 0 {
		t.Errorf("%s: wanted figures for processor, memory and disk", out)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("%v is left in the folder, %v; wanted nothing", left, err)
	}
}

// A server that deckhand bench started ends when deckhand bench is killed, and its sandboxes with it.
func TestBenchKilled(t *testing.T) {
	t.Parallel()
	if os.Getenv(builtProgram) == "" {
		t.Skip("SKIPPED: it starts itself as a server, so it needs the program and not the test; make test names it")
	}
	dir := t.TempDir()
	cmd := process("bench", "--dir", dir, "--duration", "1m", "--sandbox", "host")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "conversations"); { // the server is ready
	}
	processes := func(of string) []string { // a process that is being started has the command line of the one that starts it
		found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		return slices.DeleteFunc(found, func(file string) bool {
			line, err := os.ReadFile(file)
			return err != nil || !strings.Contains(string(line), of) || !strings.Contains(string(line), dir)
		})
	}
	const server, runner = "\x00serve\x00--addr\x00", "\x00serve\x00--socket\x00"
	until(t, "the first sandbox to start", func() bool { return len(processes(runner)) > 0 })
	if len(processes(server)) == 0 {
		t.Fatal("there is no server")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	until(t, "the server and its sandboxes to end", func() bool { return len(processes(server))+len(processes(runner)) == 0 })
}

func TestBenchRefusesNonsense(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"bench", "--every", "0s"}, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), "must be above 0") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
