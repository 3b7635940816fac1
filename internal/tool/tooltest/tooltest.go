// Package tooltest is a place to try tools in: a sandbox of the host driver with
// the real runner in it, and calls as the loop makes them.
package tooltest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/tool"
)

// Bench is a sandbox to try tools in.
type Bench struct {
	testing.TB
	// Root is the workspace, as it is called inside and outside alike.
	Root string

	driver *host.Driver
	handle sandbox.Handle
	box    *sandbox.Sandbox
	calls  atomic.Int64
}

// spec has a key, so that results outlive the runner.
var spec = sandbox.Spec{ID: "box", Seal: make([]byte, 32)}

// New starts a sandbox. It ends with the test.
func New(t *testing.T) *Bench {
	t.Helper()
	dir := sandboxtest.Dir(t)
	driver, err := host.New(host.Options{Dir: dir, Runner: sandboxtest.Runner(t)})
	b := &Bench{TB: t, driver: driver, Root: filepath.Join(dir, "box", "ws")}
	b.OK(err)
	b.box, b.handle, err = sandbox.Open(t.Context(), driver, spec, nil)
	b.OK(err)
	t.Cleanup(func() {
		_ = b.box.Close()
		b.OK(driver.Destroy(context.WithoutCancel(t.Context()), b.handle))
	})
	return b
}

// OK fails the test if there is an error.
func (b *Bench) OK(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// Box implements tool.Box.
func (b *Bench) Box(context.Context) (*sandbox.Sandbox, error) { return b.box, nil }

// Restart kills the runner and all it started, and starts it over the same files.
func (b *Bench) Restart() {
	b.Helper()
	_ = b.box.Close()
	b.OK(b.driver.Stop(b.Context(), b.handle))
	var err error
	b.box, b.handle, err = sandbox.Open(b.Context(), b.driver, spec, nil)
	b.OK(err)
}

// At is the path of a file of the workspace.
func (b *Bench) At(name string) string { return filepath.Join(b.Root, name) }

// Put writes a file of the workspace, and the folders it needs.
func (b *Bench) Put(name, text string) string {
	b.Helper()
	full := b.At(name)
	b.OK(os.MkdirAll(filepath.Dir(full), 0o755))
	b.OK(os.WriteFile(full, []byte(text), 0o644))
	return full
}

// Get reads a file of the workspace.
func (b *Bench) Get(name string) string {
	b.Helper()
	text, err := os.ReadFile(b.At(name))
	b.OK(err)
	return string(text)
}

// Call is a call that was never made before. In its arguments ROOT is the workspace.
func (b *Bench) Call(args string) tool.Call {
	return tool.Call{
		ID: fmt.Sprintf("%d-call", b.calls.Add(1)), Up: true, Session: "box", Owner: "owner",
		Args: json.RawMessage(strings.ReplaceAll(args, "ROOT", b.Root)),
	}
}

// Run makes a call.
func (b *Bench) Run(t tool.Tool, c tool.Call) tool.Result {
	b.Helper()
	r, err := t.Run(b.Context(), b.Box, c)
	b.OK(err)
	return r
}

// Works makes a call that must succeed.
func (b *Bench) Works(t tool.Tool, args string) tool.Result {
	b.Helper()
	r := b.Run(t, b.Call(args))
	if r.Failed || r.Unknown {
		b.Fatalf("%s: failed: %s", args, r.Text)
	}
	return r
}

// Fails makes a call that must fail, with words in its text.
func (b *Bench) Fails(t tool.Tool, args, words string) tool.Result {
	b.Helper()
	r := b.Run(t, b.Call(args))
	if !r.Failed || !strings.Contains(r.Text, words) {
		b.Errorf("%s: got %+v, want a failure with %q", args, r, words)
	}
	return r
}
