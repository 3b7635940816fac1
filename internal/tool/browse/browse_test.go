package browse_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/tool"
	"deckhand/internal/tool/browse"
)

// The sandboxes and browsers are real. They take seconds to start, so that the
// tests share what they can.
func TestBrowser(t *testing.T) {
	needChromium(t)
	sandboxtest.Runner(t) // kept until all have ended
	t.Run("local", func(t *testing.T) {
		gate := &way{}
		d := driver(t, local.Name, gate.out)
		tl := browse.New()
		t.Cleanup(tl.Close)
		r := open(t, d, tl, "pages")
		t.Run("Missing", func(t *testing.T) { missing(t, r) })
		r.serve(t)
		for _, p := range pageTests {
			t.Run(p.name, func(t *testing.T) { p.run(t, r) })
		}
		t.Run("Proxy", func(t *testing.T) { proxy(t, r, gate) })
		t.Run("Blocked", func(t *testing.T) { blocked(t, r, gate) })
		for _, p := range lifeTests {
			t.Run(p.name, func(t *testing.T) { p.run(t, r) })
		}
	})
	t.Run("host", func(t *testing.T) {
		d := driver(t, host.Name, noWayOut)
		tl := browse.New()
		t.Cleanup(tl.Close)
		t.Run("Apart", func(t *testing.T) { apart(t, d, tl) })
	})
}

// way is a way out that can be changed.
type way struct {
	now atomic.Pointer[sandbox.Outward]
}

func (w *way) out(ctx context.Context, id, call string, c net.Conn) {
	if f := w.now.Load(); f != nil {
		(*f)(ctx, id, call, c)
		return
	}
	c.Close()
}

func (w *way) set(f sandbox.Outward) { w.now.Store(&f) }

// Code that is not understood is told about before anything is started.
func TestNotUnderstood(t *testing.T) {
	tl := browse.New()
	defer tl.Close()
	never := func(context.Context) (*sandbox.Sandbox, error) {
		t.Error("a sandbox was asked for")
		return nil, sandbox.ErrGone
	}
	for _, args := range []string{`{"code":"import os"}`, `{"code":"goto()"}`, `{"code":""}`, `{"code":7}`} {
		r, err := tl.Run(t.Context(), never, tool.Call{Session: "s", Args: json.RawMessage(args)})
		if err != nil || !r.Failed || r.Text == "" {
			t.Errorf("%s: %+v, %v", args, r, err)
		}
	}
}

func TestSpec(t *testing.T) {
	s := browse.New().Spec()
	if s.Name != "browser" || s.ReadOnly || s.Harmless || !json.Valid(s.Schema) || !strings.Contains(s.Description, "goto(") {
		t.Errorf("%+v", s)
	}
}

// A tool that was closed says so, and a sandbox that cannot be had is not the
// model's business.
func TestClosed(t *testing.T) {
	tl := browse.New()
	call := tool.Call{Session: "s", Args: json.RawMessage(`{"code":"goto('x.test')"}`)}
	if _, err := tl.Run(t.Context(), func(context.Context) (*sandbox.Sandbox, error) { return nil, sandbox.ErrGone }, call); err != sandbox.ErrGone {
		t.Errorf("without a sandbox: %v", err)
	}
	tl.Close()
	if _, err := tl.Run(t.Context(), func(context.Context) (*sandbox.Sandbox, error) { return nil, nil }, call); err == nil {
		t.Error("a closed tool runs")
	}
}
