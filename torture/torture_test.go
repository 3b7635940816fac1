//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/cluster/natstest"
	"deckhand/internal/soak"
	"deckhand/torture/report"
	"deckhand/torture/world"
	"deckhand/torture/world/clock"
)

// asProgram makes the test binary be the program torture.
const asProgram = "DECKHAND_TORTURE_TEST"

func TestMain(m *testing.M) {
	clock.Run()
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// The short form: a dozen kills with a fixed seed, and some with a random one, which is printed.
func TestShortTorture(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts servers and sandboxes")
	program := built(t)
	for _, c := range []struct {
		name    string
		seed    uint64
		kills   int
		store   string
		servers int
	}{
		{"a fixed seed", 19, soak.Times(10, 300), world.SQLite, 1},
		{"a random seed", 1 + rand.Uint64N(1_000_000), soak.Times(6, 300), world.SQLite, 1},
		{"PostgreSQL", 19, soak.Times(4, 300), world.PostgreSQL, 1},
		{"three servers", 19, soak.Times(6, 300), world.PostgreSQL, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.store == world.PostgreSQL {
				needs(t, "PostgreSQL", "/usr/lib/postgresql/*/bin/postgres")
			}
			nats := ""
			if c.servers > 1 {
				nats = natstest.Available(t)
			}
			t.Logf("make torture SEED=%d KILLS=%d STORE=%s SERVERS=%d", c.seed, c.kills, c.store, c.servers)
			out, err := run1(t, "-program", program, "-seed", fmt.Sprint(c.seed), "-kills", fmt.Sprint(c.kills), "-store", c.store, "-servers", fmt.Sprint(c.servers),
				"-nats", nats, "-people", "4", "-long=false", "-results", "", "-failed", filepath.Join("..", "bin", "torture-failed"))
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Log(out)
		})
	}
}

// A seed gives the same faults in the same order.
func TestScheduleIsReproducible(t *testing.T) {
	t.Parallel()
	a, b, other := schedule(7), schedule(7), schedule(8)
	if a != b || a == other {
		t.Errorf("%s\n%s\n%s", a, b, other)
	}
}

// The output has the end of the history, and the file has all of it.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	r := &run{options: options{failed: t.TempDir()}, dir: filepath.Join(t.TempDir(), "run")}
	for i := range maxHistory + 5 {
		r.history = append(r.history, report.Entry{Name: "kill-server", What: fmt.Sprintf("server %d", i)})
	}
	if text := r.recent(maxHistory); strings.Count(text, "\n") != maxHistory+1 || !strings.HasPrefix(text, "(5 earlier lines") || !strings.Contains(text, fmt.Sprintf("server %d", maxHistory+4)) {
		t.Errorf("printed:\n%s", text)
	}
	at, err := r.save()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(at, "history.txt")); err != nil || strings.Count(string(text), "\n") != maxHistory+5 {
		t.Errorf("%v:\n%s", err, text)
	}
}

// run1 runs the program torture.
func run1(t *testing.T, args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // other users pass through
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// built is the program under test: the one that make test built.
func built(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		missing(t, "root: faults are injected with namespaces, mounts and signals to sandboxes")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		missing(t, "ip (Debian: apt-get install iproute2)")
	}
	program, err := filepath.Abs(cmp.Or(os.Getenv("DECKHAND_TEST_PROGRAM"), filepath.Join("..", "bin", "deckhand")))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		missing(t, "the built program: "+err.Error())
	}
	return program
}

func needs(t *testing.T, what, pattern string) {
	t.Helper()
	if found, _ := filepath.Glob(pattern); len(found) == 0 {
		missing(t, what)
	}
}

// missing skips a test loudly, and fails it under CI=true.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal("this needs " + what)
	}
	t.Skip("SKIPPED: this needs " + what)
}

// schedule lists the faults that a seed leads to.
func schedule(seed uint64) string {
	var out []string
	r := &run{options: options{seed: seed}, world: &world.World{}}
	for lane, all := range r.lanes() {
		random := random(seed, uint64(lane))
		for range 20 {
			out = append(out, choose(all, random).Name)
		}
	}
	return strings.Join(out, " ")
}
