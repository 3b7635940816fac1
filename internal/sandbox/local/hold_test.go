package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/cgroup"
)

// A sandbox that is held writes nothing, and goes on afterwards: when it is released, when
// a server attaches after the one that held it died, and not at all when it is ended.
func TestHold(t *testing.T) {
	d := sharedDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "held"})
	sh(t, s, ": > n; (exec 9> gone; rm gone; head -c 1000000 /dev/zero >&9; while :; do echo x >> n; done) > /dev/null 2>&1 &")
	hold := func() sandbox.Held {
		t.Helper()
		got, err := d.Hold(t.Context(), h)
		if errors.Is(err, cgroup.ErrNoFreezer) && (os.Getenv("CI") == "" || os.Geteuid() != 0) {
			t.Skip("SKIPPED: there is no freezer for control groups here")
		}
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	file := filepath.Join(d.dir, "held", box.WorkDir, "n")
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	grows := func(what string) {
		t.Helper()
		end, tick := time.After(2*time.Minute), time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for before := size(); size() == before; {
			select {
			case <-tick.C:
			case <-end:
				t.Fatalf("%s: it does not go on", what)
			}
		}
	}
	grows("at first")
	first := hold()
	before := size()
	<-time.After(20 * time.Millisecond)
	if now := size(); now != before {
		t.Errorf("it wrote %d bytes while it was held", now-before)
	}
	if _, deleted, err := first.Usage(t.Context()); err != nil || deleted < 1000000 {
		t.Errorf("deleted files have %d bytes, %v", deleted, err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	grows("released")

	// A server that is killed closes the pipe to the guard, and does nothing else.
	hold().(*held).unguard()
	grows("without its server")

	last := hold() // and die with the guard
	defer last.Release()
	m, err := readMeta(filepath.Join(d.dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	pids, err := cgroup.Processes(m.Groups)
	if err != nil || len(pids) < 2 {
		t.Fatalf("%v, %v", pids, err)
	}
	for _, pid := range pids { // about to end them
		if pid != m.PID {
			signal([]int{pid}, unix.SIGSTOP)
		}
	}
	if err := os.WriteFile(filepath.Join(d.dir, "held", heldName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s2, err := d.Attach(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	grows("after another server attached")

	failed := errors.New("it cannot be ended")
	ending := hold()
	before = size()
	err = ending.End(func() error {
		if got := sh(t, s2, "echo fine"); got != "fine" || size() != before {
			t.Errorf("the runner says %s, and %d bytes were written", got, size()-before)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	end, tick := time.After(2*time.Minute), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(pids) != 1 {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("what is left: %v", pids)
		}
		if pids, err = cgroup.Processes(m.Groups); err != nil {
			t.Fatal(err)
		}
	}
}
