package sim

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// The tools: one that runs in the sandbox, which knows what it has begun, and
// one elsewhere, which cannot be asked.
const (
	localName  = "run"
	remoteName = "send"
)

var toolSchema = json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)

// local works in the sandbox.
type local struct{ s *server }

func (local) Spec() tool.Spec {
	return tool.Spec{Name: localName, Description: "Runs.", Schema: toolSchema}
}

// Run implements tool.Tool.
func (t local) Run(ctx context.Context, open tool.Box, c tool.Call) (tool.Result, error) {
	if _, err := open(ctx); err != nil {
		return tool.Result{}, err
	}
	w := t.s.w
	r := w.dice("run", c.Session, c.ID)
	if err := pass(ctx, upTo(r, time.Second)); err != nil {
		return tool.Result{}, err
	}
	switch {
	case t.s.dead.Load():
		return tool.Result{}, errDead
	case w.strikes(r, 20):
		w.fault("tool: sandbox not reached")
		return tool.Result{}, sandbox.ErrLost
	case w.strikes(r, 10):
		w.fault("tool: unexpected error")
		return tool.Result{}, errors.New("nobody expected this")
	}
	running, known := w.box(session.ID(c.Session)).begin(t.s, c, r)
	if !known {
		return tool.Result{Unknown: true, Text: "The sandbox was made anew; nobody can tell."}, nil
	}
	if w.strikes(r, 20) {
		w.fault("tool: connection lost")
		return tool.Result{}, sandbox.ErrLost
	}
	select {
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-running.ended:
	}
	if running.lost {
		return tool.Result{}, sandbox.ErrLost
	}
	return running.result, nil
}

// box is a session's sandbox: what it has begun it knows, until it is lost.
type box struct {
	w *world

	mu   sync.Mutex
	runs map[string]*run
	gone chan struct{} // closed when this sandbox is lost
	boot int           // how often it was lost
}

// run is a command in a sandbox. What stands beside ended is written before it is closed.
type run struct {
	ended  chan struct{}
	lost   bool
	result tool.Result
}

func (w *world) box(id session.ID) *box {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.boxes[id]
	if b == nil {
		b = &box{w: w, runs: map[string]*run{}, gone: make(chan struct{})}
		w.boxes[id] = b
	}
	return b
}

func (b *box) boots() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.boot
}

// begin starts a command, unless it is known; false if it may have been begun
// in a sandbox that is lost.
func (b *box) begin(by *server, c tool.Call, r *rand.Rand) (*run, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.runs[c.ID]; known != nil {
		return known, true
	}
	if b.boot > 0 && c.Repeats() {
		return nil, false
	}
	b.w.books.did(by, c)
	n := &run{ended: make(chan struct{}), result: tool.Result{Text: "Output " + word(r, 1+r.IntN(40))}}
	if b.w.strikes(r, 60) {
		b.w.fault("tool: fails")
		n.result = tool.Result{Failed: true, Text: "It failed: " + word(r, 2)}
	}
	b.runs[c.ID] = n
	took, gone := upTo(r, 3*time.Minute), b.gone
	b.w.background.Go(func() {
		defer close(n.ended)
		timer := time.NewTimer(took)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-gone:
			n.lost = true
		}
	})
	return n, true
}

// lose ends the sandbox with everything in it; the next one knows nothing.
func (b *box) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.gone)
	b.runs, b.gone = map[string]*run{}, make(chan struct{})
	b.boot++
}

// remote acts somewhere else, where calls cannot be told apart.
type remote struct{ s *server }

func (remote) Spec() tool.Spec {
	return tool.Spec{Name: remoteName, Description: "Sends.", Schema: toolSchema}
}

// Run implements tool.Tool.
func (t remote) Run(ctx context.Context, _ tool.Box, c tool.Call) (tool.Result, error) {
	if c.Again {
		return tool.Result{Unknown: true, Text: "It may have been sent before."}, nil
	}
	w := t.s.w
	r := w.dice("send", c.Session, c.ID)
	if err := pass(ctx, upTo(r, time.Second)); err != nil {
		return tool.Result{}, err
	}
	if t.s.dead.Load() {
		return tool.Result{}, errDead
	}
	w.books.did(t.s, c)
	if err := pass(ctx, upTo(r, 20*time.Second)); err != nil {
		return tool.Result{}, err
	}
	switch {
	case w.strikes(r, 30):
		w.fault("tool: answer lost")
		return tool.Result{}, errors.New("the connection ended before the answer")
	case w.strikes(r, 40):
		w.fault("tool: refuses")
		return tool.Result{Failed: true, Text: "No: " + word(r, 2)}, nil
	}
	return tool.Result{Text: "Sent " + word(r, 3)}, nil
}
