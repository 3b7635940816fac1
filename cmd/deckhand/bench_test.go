package main

import (
	"encoding/json"
	"os"
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

func TestBenchRefusesNonsense(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"bench", "--every", "0s"}, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), "must be above 0") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
