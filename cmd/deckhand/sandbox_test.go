package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/client"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/soak"
)

// withSandbox is how a server with a sandbox is started in these tests.
func withSandbox(t *testing.T, driver string) []string {
	t.Helper()
	if driver != "host" {
		soak.NotShort(t, "starts sandboxes")
	}
	return []string{"--sandbox", driver, "--runner-path", sandboxtest.Runner(t)}
}

// said waits for the answer to a command and returns it.
func (b *box) said(id string, after int64, text string) string {
	b.t.Helper()
	var found string
	b.follow(id, after, func(it client.LegacyItem) bool {
		if it.Event != nil && it.Event.Observation == "run" && strings.Contains(string(it.Raw), text) {
			found = string(it.Raw)
		}
		return found != ""
	})
	return found
}

// A person who writes a command to the demo model gets its result from a real
// sandbox, and the workspace outlives a stop.
func TestCommandRunsInTheSandbox(t *testing.T) {
	t.Parallel()
	b := serve(t, "", withSandbox(t, "local")...)
	b.demo("scripted/demo")
	id := b.create("$ echo one > kept; pwd; id -u; cat /proc/self/status | grep CapEff")
	got := b.said(id, 0, "/workspace")
	if !strings.Contains(got, "CapEff:\\t0000000000000000") || !strings.Contains(got, `"exit_code":0`) {
		t.Errorf("%s", got)
	}
	if code, text, _ := b.raw("POST", "/api/conversations/"+id+"/stop", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	if code, text, _ := b.raw("POST", "/api/conversations/"+id+"/message", `{"message":"$ cat kept"}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	b.said(id, 0, `"content":"one`)
	b.remove(id)
}

// remove deletes conversations and waits until their sandboxes are gone: they
// would outlive the test.
func (b *box) remove(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		if code, text, _ := b.raw("DELETE", "/api/conversations/"+id, ""); code != http.StatusOK {
			b.t.Errorf("%d %s", code, text)
		}
	}
	for _, id := range ids {
		b.until("the sandbox of "+id+" goes", func() bool {
			_, err := os.Stat(filepath.Join(b.dir, "boxes", id))
			return errors.Is(err, os.ErrNotExist)
		})
	}
}

// until waits for what says nothing when it happens: a folder that goes, a
// process that ends.
func (b *box) until(what string, ok func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Fatalf("never: %s", what)
		}
	}
}

// rounds is how often the server is killed in TestKilledServerRunsNothingTwice.
var rounds = soak.Times(5, 50)

// The server is killed with a command under way, several times in a row. Every
// command lasts twenty seconds, so most live through many deaths of the server.
// Each ran once and its result arrives.
func TestKilledServerRunsNothingTwice(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: takes a minute")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := withSandbox(t, "local")
	var ids []string
	for i := range rounds {
		b, process := spawn(t, dir, args...)
		if i == 0 {
			b.demo("scripted/demo")
		}
		// It says something every five seconds, since it would be reported as silent after ten.
		id := b.create(fmt.Sprintf("$ echo begun | tee -a runs; for i in 1 2 3 4; do sleep 5; echo; done; echo 'the end of '%d", i))
		ids = append(ids, id)
		b.follow(id, 0, func(it client.LegacyItem) bool { return it.Delta != nil && strings.Contains(it.Delta.Text, "begun") })
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait()
	}
	b, _ := spawn(t, dir, args...)
	for i, id := range ids {
		got := b.said(id, 0, fmt.Sprintf("the end of %d", i))
		if !strings.Contains(got, `"exit_code":0`) {
			t.Errorf("round %d: %s", i, got)
		}
		runs, err := os.ReadFile(filepath.Join(dir, "boxes", id, "ws", "runs"))
		if err != nil || string(runs) != "begun\n" {
			t.Errorf("round %d: the command ran %d times: %v", i, strings.Count(string(runs), "\n"), err)
		}
	}
	b.remove(ids...)
}
