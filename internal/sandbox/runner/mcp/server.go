package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/spawn"
)

// server is a tool server by its name: what it is started with, and its run.
type server struct {
	host *Host
	name string
	// turn is held while it is started or stopped.
	turn chan struct{}

	// These change only in a turn.
	words  sandbox.MCPServer
	starts []time.Time // of the last minute

	mu      sync.Mutex
	run     *session
	state   sandbox.MCPState
	listing bool // the tools are being listed
	stale   bool // and has to ask again
	removed bool
	// gone is closed when it was removed and has ended.
	gone chan struct{}
}

func newServer(h *Host, name string) *server {
	return &server{host: h, name: name, turn: make(chan struct{}, 1), gone: make(chan struct{}), state: sandbox.MCPState{Name: name, Tools: []sandbox.MCPTool{}}}
}

// take waits for the turn.
func (s *server) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) give() { <-s.turn }

// live is the run, nil if there is none.
func (s *server) live() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil || !s.run.alive() {
		return nil
	}
	return s.run
}

func sameWords(a, b sandbox.MCPServer) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env)
}

// begin starts it with these words, unless it runs with them already.
func (s *server) begin(ctx context.Context, words sandbox.MCPServer) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	switch {
	case !sameWords(s.words, words):
		s.halt()
		s.words, s.starts = words, nil
	case s.stuck(ctx):
		s.halt()
	}
	_, err := s.running(ctx)
	return err
}

// stuck is true for a run that has nothing to do and does not answer. One that
// works may have its reasons.
func (s *server) stuck(ctx context.Context) bool {
	run := s.live()
	if run == nil || run.busy() {
		return false
	}
	ping, cancel := context.WithTimeout(ctx, s.host.pong)
	defer cancel()
	_, err := run.call(ping, "ping", struct{}{})
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !run.busy()
}

// session is the run, started again if it has ended.
func (s *server) session(ctx context.Context) (*session, error) {
	if run := s.live(); run != nil {
		return run, nil
	}
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	return s.running(ctx)
}

// running starts it if it does not run. The caller has the turn.
func (s *server) running(ctx context.Context) (*session, error) {
	s.mu.Lock()
	removed := s.removed
	s.mu.Unlock()
	if removed {
		return nil, fmt.Errorf("the MCP server %q %w", s.name, errEnding)
	}
	if run := s.live(); run != nil {
		return run, nil
	}
	now := s.host.now()
	s.starts = slices.DeleteFunc(s.starts, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(s.starts) > maxRestarts { // the first start is not a restart
		return nil, fmt.Errorf("the MCP server %q was started %d times within a minute and ended each time; wait a minute, or fix it. Its last end: %s",
			s.name, len(s.starts), s.lastEnd())
	}
	s.starts = append(s.starts, now)
	return s.start(ctx)
}

// errEnding is returned while a server is being stopped.
var errEnding = errors.New("is being stopped")

// lastEnd is how it ended last.
func (s *server) lastEnd() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.run != nil && !s.run.alive():
		return s.run.why
	case s.state.Exit != "":
		return s.state.Exit
	}
	return "unknown"
}

// start starts a process and shakes hands. The caller has the turn.
func (s *server) start(ctx context.Context) (*session, error) {
	s.mu.Lock()
	s.state.Starts++
	if s.run != nil { // it has ended, or there would be no need to start
		s.state.Exit = s.run.proc.status()
	}
	s.mu.Unlock()

	p, err := launch(s.host.config.Spawner, spawn.Attr{
		Args: append([]string{s.words.Command}, s.words.Args...),
		Dir:  s.host.config.Dir,
		Env:  environ(s.host.config.Env(), s.words.Env),
	})
	if err != nil {
		err = fmt.Errorf("the MCP server %q cannot be started: %w", s.name, err)
		s.mu.Lock()
		s.run, s.state.Exit = nil, err.Error()
		s.mu.Unlock()
		return nil, err
	}
	run := talk(s.name, p, s.relist, s.host.grace)
	s.mu.Lock()
	s.run, s.listing, s.stale = run, true, false
	removed := s.removed
	s.mu.Unlock()
	if removed {
		run.end()
		return nil, s.failed(ctx, run, nil)
	}
	limited, cancel := context.WithTimeout(ctx, s.host.startup)
	defer cancel()
	if err := s.introduce(limited, run); err != nil {
		run.end()
		return nil, s.failed(ctx, run, err)
	}
	return run, nil
}

// introduce shakes hands and asks for the tools.
func (s *server) introduce(ctx context.Context, run *session) error {
	version, name, err := run.handshake(ctx)
	var tools []sandbox.MCPTool
	if err == nil {
		tools, err = run.list(ctx)
	}
	s.mu.Lock()
	stale := s.stale
	s.listing, s.stale = false, false
	if err == nil {
		s.state.Version, s.state.Server, s.state.Tools = version, name, tools
	}
	s.mu.Unlock()
	if err == nil && stale {
		s.relist(run)
	}
	return err
}

// failed returns why a start failed, in words that help. ctx is the caller's.
func (s *server) failed(ctx context.Context, run *session, err error) error {
	words := ""
	if last := run.proc.stderr.lastWords(); last != "" {
		words = "; its last output was:\n" + last
	}
	s.mu.Lock()
	removed := s.removed
	s.mu.Unlock()
	switch {
	case removed:
		return fmt.Errorf("the MCP server %q was stopped while it started", s.name)
	case ctx.Err() != nil:
		return fmt.Errorf("the MCP server %q was still starting when the wait was over: %w", s.name, ctx.Err())
	case errors.Is(err, errEnded):
		return fmt.Errorf("the MCP server %q did not start: %s", s.name, run.why)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the MCP server %q did not answer within %v%s", s.name, s.host.startup, words)
	}
	return fmt.Errorf("the MCP server %q did not start: %w%s", s.name, err, words)
}

// environ adds to an environment, the new over the old.
func environ(base []string, more map[string]string) []string {
	var env []string
	for _, e := range base {
		name, _, _ := strings.Cut(e, "=")
		if _, replaced := more[name]; !replaced {
			env = append(env, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		env = append(env, name+"="+more[name])
	}
	return env
}

// relist asks for the tools again, in the background, one time after the other.
func (s *server) relist(run *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing || s.run != run {
		s.stale = true
		return
	}
	s.listing = s.host.background(func() {
		for again := true; again; {
			ctx, cancel := context.WithTimeout(context.Background(), s.host.startup)
			tools, err := run.list(ctx)
			cancel()
			s.mu.Lock()
			if s.run != run { // another run has its own list
				s.mu.Unlock()
				return
			}
			if err == nil {
				s.state.Tools = tools
			}
			again = s.stale && run.alive()
			s.listing, s.stale = again, false
			s.mu.Unlock()
		}
	})
}

// halt ends the run. The caller has the turn.
func (s *server) halt() {
	s.mu.Lock()
	run := s.run
	s.mu.Unlock()
	if run != nil {
		run.end()
	}
}

// now is where it stands.
func (s *server) now() sandbox.MCPState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	if s.run == nil {
		return st
	}
	st.Running = s.run.alive()
	if !st.Running {
		st.Exit = s.run.proc.status()
	}
	st.Stderr = s.run.remark() + s.run.proc.stderr.String()
	return st
}

// check refuses what cannot be started.
func check(w sandbox.MCPServer) error {
	if w.Name == "" || w.Command == "" {
		return fmt.Errorf("%w: a tool server needs a name and a command", rpc.ErrInvalid)
	}
	return nil
}
