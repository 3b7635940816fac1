package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A server that is killed while a command runs, as a person at a terminal sees it: the command goes
// on without the server and is not run again. The moving picture of the README is made here.
func TestKilledInMidCommand(t *testing.T) {
	t.Parallel()
	needLocal(t)
	dir, address := t.TempDir(), freeAddress(t)
	if err := os.Chmod(dir, 0o755); err != nil { // users of sandboxes pass through
		t.Fatal(err)
	}
	b, cmd := spawn(t, dir, "--sandbox", "local", "--addr", address)
	b.demo("scripted/demo")
	const task = "$ for n in 1 2 3 4 5 6; do echo test $n of 6 passed; sleep 0.7; done"
	id := b.create(task)
	s := onScreen(t, b.program("attach", id, "--server", "http://"+address, "--key-file", filepath.Join(dir, "admin.key")))
	begun := time.Now()
	var lines []string
	var times []time.Duration
	show := func(format string, values ...any) {
		lines, times = append(lines, fmt.Sprintf(format, values...)), append(times, time.Since(begun))
	}
	passed := func(n int) {
		s.expect(fmt.Sprintf("test %d of 6 passed", n))
		show("  test %d of 6 passed", n)
	}
	show("\x1b[32m$\x1b[0m deckhand attach %s", id[:8])
	s.expect("for n in 1 2 3")
	show("\x1b[36m> %s\x1b[0m", task)
	s.expect("in the sandbox")
	passed(1)
	passed(2)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	show("\x1b[31m  kill -9 %d\x1b[0m\x1b[2m    the server, from another terminal\x1b[0m", cmd.Process.Pid)
	s.expect("connection lost")
	show("\x1b[33m  connection lost\x1b[0m")
	again, _ := spawn(t, dir, "--sandbox", "local", "--addr", address)
	t.Cleanup((&person{box: again}).dropAll)
	show("\x1b[32m  deckhand serve\x1b[0m\x1b[2m    started again\x1b[0m")
	for n := 3; n <= 6; n++ {
		passed(n)
	}
	s.expect("done")
	show("\x1b[2m  done · nothing was lost, and the command ran once\x1b[0m")
	s.press(ctrlD)
	s.ends(0)
	var want strings.Builder
	for n := range 6 {
		fmt.Fprintf(&want, "test %d of 6 passed\n", n+1)
	}
	runs := 0
	for _, it := range (&person{box: again}).events(id) {
		if it.Event.Observation == "run" {
			runs++
			if got := strings.TrimSpace(it.Event.Content); got != strings.TrimSpace(want.String()) {
				t.Errorf("the command gave %q", got)
			}
		}
	}
	if runs != 1 {
		t.Errorf("%d results", runs)
	}
	if folder := os.Getenv("DECKHAND_PICTURES"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, "killed.svg"), []byte(drawn(lines, times...)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
