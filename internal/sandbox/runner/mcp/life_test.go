package mcp

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

func TestStartTwiceIsStartOnce(t *testing.T) {
	b := open(t)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := b.MCPStart(t.Context(), bad("plain")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if b.file("starts") != "x" || b.only().Starts != 1 {
		t.Errorf("it was started %d times", len(b.file("starts")))
	}
	pid := b.text(b.call("pid", ""))
	other := bad("plain")
	other.Args = append(other.Args, "more")
	b.start(other)
	if b.text(b.call("pid", "")) == pid || b.file("starts") != "xx" {
		t.Error("other words did not start it anew")
	}
	if n, _ := strconv.Atoi(pid); alive(n) {
		t.Error("the one before is still there")
	}
	other.Env = bad("pages").Env
	if st := b.start(other); b.file("starts") != "xxx" || len(st.Tools) != 10 {
		t.Errorf("another environment did not start it anew: %+v", st)
	}
}

func TestDeathInACall(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	first := b.text(b.call("pid", ""))
	r := b.call("die", "")
	if !strings.Contains(r.Error, "ended with exit code 7") || !strings.HasSuffix(r.Error, "out of cheese") || len(r.Error) > 5000 {
		t.Errorf("%.300s", r.Error)
	}
	st := b.only()
	if st.Running || st.Exit != "ended with exit code 7" || len(st.Stderr) < 60<<10 || len(st.Stderr) > 64<<10 || !strings.HasSuffix(st.Stderr, "out of cheese\n") {
		t.Errorf("%v %q %d bytes", st.Running, st.Exit, len(st.Stderr))
	}
	// The next call has it started again, without a report.
	if second := b.text(b.call("pid", "")); second == first || second == "" {
		t.Error("it was not started again")
	}
	if st := b.only(); st.Starts != 2 || !st.Running || st.Exit != "ended with exit code 7" || strings.Contains(st.Stderr, "cheese") {
		t.Errorf("%+v", st)
	}
	if r := b.call("kill", ""); !strings.Contains(r.Error, "killed") {
		t.Errorf("%+v", r)
	}
	// An answer that comes with the end is an answer.
	if got := b.text(b.call("last words", "")); got != "farewell" {
		t.Error(got)
	}
	b.until("it has ended", func(st sandbox.MCPState) bool { return !st.Running })
	if got := b.text(b.call("echo", "x")); got != "x" {
		t.Error(got)
	}
	if r := b.call("close output", ""); !strings.Contains(r.Error, "ended") {
		t.Errorf("%+v", r)
	}
}

// All that wait learn of the death.
func TestDeathWithManyCalls(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if r := b.call("hang", ""); !strings.Contains(r.Error, "ended with exit code 7") {
				t.Errorf("%.200s", r.Error)
			}
		})
	}
	b.until("all hang", func(sandbox.MCPState) bool {
		s, _ := b.host.named("bad", false)
		run := s.live()
		run.mu.Lock()
		defer run.mu.Unlock()
		return len(run.pending) == 20
	})
	b.call("die", "")
	all.Wait()
}

func TestRestartsAreBounded(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	for range 1 + maxRestarts {
		if r := b.call("die", ""); !strings.Contains(r.Error, "exit code 7") {
			t.Fatalf("%.200s", r.Error)
		}
	}
	r := b.call("echo", "x")
	if !strings.Contains(r.Error, "within a minute") || !strings.HasSuffix(r.Error, "out of cheese") {
		t.Errorf("%.300s", r.Error)
	}
	if n := len(b.file("starts")); n != 1+maxRestarts {
		t.Errorf("it was started %d times", n)
	}
	b.skew.Store(int64(time.Minute))
	if got := b.text(b.call("echo", "x")); got != "x" {
		t.Error("it is not started again after a minute")
	}
}

func TestStartFails(t *testing.T) {
	for mode, want := range map[string]string{
		"dead":               "ended with exit code 3; its last output was:\nfirst words of mode dead\nno such module: leftpad",
		"version 1999-12-31": `speaks version "1999-12-31" of the protocol, which is not known here (known are 2025-11-25, 2025-06-18`,
		"version ":           `speaks version ""`,
		"endless":            "its list of tools does not end",
		"circle":             "its list of tools does not end",
	} {
		t.Run(mode, func(t *testing.T) {
			b := open(t)
			_, err := b.MCPStart(t.Context(), bad(mode))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			st := b.only() // it is remembered, for people to see
			if st.Running || st.Starts != 1 || st.Exit == "" || !strings.Contains(st.Stderr, "first words") {
				t.Errorf("%+v", st)
			}
		})
	}
	t.Run("no such program", func(t *testing.T) {
		b := open(t)
		_, err := b.MCPStart(t.Context(), sandbox.MCPServer{Name: "bad", Command: "no-such-program"})
		if err == nil || !strings.Contains(err.Error(), "no-such-program") {
			t.Error(err)
		}
		if st := b.only(); st.Running || !strings.Contains(st.Exit, "no-such-program") || st.Tools == nil {
			t.Errorf("%+v", st)
		}
		if r := b.call("echo", ""); !strings.Contains(r.Error, "no-such-program") {
			t.Errorf("%+v", r)
		}
	})
}

func TestKnownVersions(t *testing.T) {
	for _, v := range versions {
		b := open(t)
		if st := b.start(bad("version " + v)); st.Version != v {
			t.Errorf("%+v", st)
		}
		if got := b.text(b.call("echo", "x")); got != "x" {
			t.Error(got)
		}
	}
}

// A server that never answers is given up, when its time is over and when its
// caller goes, and its process is not left behind.
func TestStartOfAMuteServer(t *testing.T) {
	b := open(t)
	b.host.startup, b.host.grace = 200*time.Millisecond, 10*time.Millisecond
	_, err := b.MCPStart(t.Context(), bad("mute"))
	if err == nil || !strings.Contains(err.Error(), "did not answer within 200ms") {
		t.Error(err)
	}
	if st := b.only(); st.Running {
		t.Errorf("%+v", st)
	}

	b = open(t)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := b.MCPStart(ctx, bad("mute")); left <- err }()
	for all, _ := b.MCPStates(t.Context()); len(all) == 0 || !all[0].Running; all, _ = b.MCPStates(t.Context()) {
		<-time.After(time.Millisecond)
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.until("it is given up", func(st sandbox.MCPState) bool { return !st.Running })
	// Its time belongs to the call that has it started, too.
	r := b.callAs(sandbox.MCPCall{Tool: "echo", Timeout: 50 * time.Millisecond}, "")
	if !strings.Contains(r.Error, "did not answer") {
		t.Errorf("%+v", r)
	}
}

func TestToolsOverSeveralPages(t *testing.T) {
	b := open(t)
	st := b.start(bad("pages"))
	if len(st.Tools) != 10 || st.Tools[8].Name != "tool-4" || string(st.Tools[9].InputSchema) != `{"type":"object"}` {
		t.Errorf("%+v", st.Tools)
	}
	b = open(t)
	if st := b.start(bad("no tools")); st.Tools == nil || len(st.Tools) != 0 || !st.Running {
		t.Errorf("%+v", st)
	}
}

func TestToolsChange(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	for _, name := range []string{"one", "two", "three"} {
		b.call("change", name)
	}
	st := b.until("the tools are known", func(st sandbox.MCPState) bool { return len(st.Tools) == 4 })
	if st.Tools[3].Name != "three" {
		t.Errorf("%+v", st.Tools)
	}
	b = open(t)
	b.start(bad("eager"))
	b.until("the newest list is known", func(st sandbox.MCPState) bool { return len(st.Tools) == 1 && st.Tools[0].Name == "list-1" })
}

func TestNoise(t *testing.T) {
	b := open(t)
	st := b.start(bad("noisy"))
	if !strings.HasPrefix(st.Stderr, "[passed over on stdout: 6 lines") || !strings.Contains(st.Stderr, "Welcome to this server!") {
		t.Errorf("%q", st.Stderr)
	}
}

func TestStop(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	pid, _ := strconv.Atoi(b.text(b.call("pid", "")))
	child, _ := strconv.Atoi(b.text(b.call("child", "")))
	if !alive(pid) || !alive(child) {
		t.Fatal("they do not run")
	}
	hangs := make(chan sandbox.MCPResult, 1)
	go func() { hangs <- b.call("hang", "") }()
	b.until("it hangs", func(sandbox.MCPState) bool { return b.busy() })
	if err := b.MCPStop(t.Context(), "bad"); err != nil {
		t.Error(err)
	}
	if r := <-hangs; !strings.Contains(r.Error, "ended") {
		t.Errorf("%+v", r)
	}
	if alive(pid) {
		t.Error("the server is still there")
	}
	for alive(child) { // it was killed; its new parent has yet to be told
		<-time.After(time.Millisecond)
	}
	if all, err := b.MCPStates(t.Context()); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	if err := b.MCPStop(t.Context(), "bad"); err != nil {
		t.Error("stopping twice:", err)
	}
	if r := b.call("echo", ""); !strings.Contains(r.Error, "no MCP server") {
		t.Errorf("%+v", r)
	}
	if st := b.start(bad("plain")); !st.Running || st.Starts != 1 {
		t.Errorf("%+v", st)
	}
}

// What does not listen is killed.
func TestStopByForce(t *testing.T) {
	b := open(t)
	b.host.grace = 50 * time.Millisecond
	b.start(bad("stubborn"))
	pid, _ := strconv.Atoi(b.text(b.call("pid", "")))
	if err := b.MCPStop(t.Context(), "bad"); err != nil {
		t.Error(err)
	}
	if alive(pid) {
		t.Error("it is still there")
	}
	if b.file("deaf") != "x" {
		t.Error("its input was not closed first")
	}
}

// Stopping what is just starting does not wait for the start.
func TestStopWhileStarting(t *testing.T) {
	b := open(t)
	left := make(chan error, 1)
	go func() { _, err := b.MCPStart(t.Context(), bad("mute")); left <- err }()
	for all, _ := b.MCPStates(t.Context()); len(all) == 0 || !all[0].Running; all, _ = b.MCPStates(t.Context()) {
		<-time.After(time.Millisecond)
	}
	if err := b.MCPStop(t.Context(), "bad"); err != nil {
		t.Error(err)
	}
	if err := <-left; err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Error(err)
	}
	if all, err := b.MCPStates(t.Context()); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}

// A start that comes while the one of that name is being stopped waits for that.
func TestStartWhileStopping(t *testing.T) {
	b := open(t)
	b.host.grace = 300 * time.Millisecond
	b.start(bad("stubborn"))
	stopped := make(chan error, 1)
	go func() { stopped <- b.MCPStop(t.Context(), "bad") }()
	s, _ := b.host.named("bad", false)
	for removed := false; !removed; {
		s.mu.Lock()
		removed = s.removed
		s.mu.Unlock()
	}
	st := b.start(bad("plain"))
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if !st.Running || st.Starts != 1 {
		t.Errorf("%+v", st)
	}
	if got := b.text(b.call("echo", "x")); got != "x" {
		t.Error(got)
	}
}

// A server that has nothing to do and does not answer is started anew; one that
// works is let alone.
func TestStuckServer(t *testing.T) {
	b := open(t)
	b.host.pong = 50 * time.Millisecond
	b.start(bad("no pong"))
	hangs := make(chan sandbox.MCPResult, 1)
	go func() { hangs <- b.call("hang", "") }()
	b.until("it hangs", func(sandbox.MCPState) bool { return b.busy() })
	if st := b.start(bad("no pong")); st.Starts != 1 {
		t.Error("a server that works was started anew")
	}
	if err := b.MCPStop(t.Context(), "bad"); err != nil {
		t.Error(err)
	}
	<-hangs
	b = open(t)
	b.host.pong = 50 * time.Millisecond
	b.start(bad("no pong"))
	if st := b.start(bad("no pong")); st.Starts != 2 || b.file("pings") != "x" {
		t.Errorf("%+v", st)
	}
}

func TestClose(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	pid, _ := strconv.Atoi(b.text(b.call("pid", "")))
	hangs := make(chan sandbox.MCPResult, 1)
	go func() { hangs <- b.call("hang", "") }()
	b.until("it hangs", func(sandbox.MCPState) bool { return b.busy() })
	b.host.Close()
	if alive(pid) {
		t.Error("it is still there")
	}
	if r := <-hangs; r.Error == "" {
		t.Errorf("%+v", r)
	}
	if _, err := b.MCPStart(t.Context(), bad("plain")); err == nil {
		t.Error("it started after Close")
	}
	if r := b.call("echo", ""); r.Error == "" {
		t.Errorf("%+v", r)
	}
}
