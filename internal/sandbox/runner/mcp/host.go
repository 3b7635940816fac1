package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/results"
	"deckhand/internal/sandbox/runner/spawn"
)

const (
	// startup is how long a server may take to answer first: it may have to be
	// downloaded.
	startup = 60 * time.Second
	// grace is how long a server that is to end is waited for, at each step.
	grace = 2 * time.Second
	// pong is how long a server that has nothing to do may take to say that it is there.
	pong = 10 * time.Second
	// maxRestarts is how often a server that dies is started again in a minute.
	maxRestarts = 5
	// maxResult is how large a result may be to travel in one answer of the runner.
	maxResult = 31 << 20
)

// Config is what a Host is made of.
type Config struct {
	Spawner *spawn.Spawner
	Results *results.Store
	// Dir is the folder that servers are started in, Env their environment. Python and
	// npx load modules from the current folder, so a repository must not lie in Dir.
	Dir string
	Env func() []string
}

// Host runs the tool servers.
type Host struct {
	config               Config
	startup, grace, pong time.Duration
	now                  func() time.Time

	mu      sync.Mutex
	servers map[string]*server
	closed  bool
	work    sync.WaitGroup
}

// New makes a host without servers. Close it.
func New(c Config) *Host {
	return &Host{config: c, startup: startup, grace: grace, pong: pong, now: time.Now, servers: map[string]*server{}}
}

// Handlers are the operations.
func (h *Host) Handlers() map[string]rpc.Handler {
	return map[string]rpc.Handler{"mcp/start": h.start, "mcp/call": h.call, "mcp/states": h.states, "mcp/stop": h.stop}
}

// Close ends all servers, which fails what they were doing, and waits.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	all := slices.Collect(maps.Values(h.servers))
	h.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range all {
		ending.Go(func() { h.end(s) })
	}
	ending.Wait()
	h.work.Wait()
}

// background does something that Close waits for; false if it is too late.
func (h *Host) background(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.work.Go(f)
	return true
}

var errClosing = fmt.Errorf("%w: the sandbox is being stopped", rpc.ErrBusy)

// named finds a server; a new one is made if make is true.
func (h *Host) named(name string, make bool) (*server, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosing
	}
	s := h.servers[name]
	if s == nil && make {
		s = newServer(h, name)
		h.servers[name] = s
	}
	return s, nil
}

func (h *Host) start(ctx context.Context, c *rpc.Call) (any, error) {
	var words sandbox.MCPServer
	if err := c.Into(&words); err != nil {
		return nil, err
	}
	if err := check(words); err != nil {
		return nil, err
	}
	for {
		s, err := h.named(words.Name, true)
		if err != nil {
			return nil, err
		}
		err = s.begin(ctx, words)
		if err == nil {
			return s.now(), nil
		}
		if !errors.Is(err, errEnding) {
			return nil, err
		}
		select { // the one before is just ending
		case <-s.gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (h *Host) states(context.Context, *rpc.Call) (any, error) {
	h.mu.Lock()
	all := maps.Clone(h.servers)
	h.mu.Unlock()
	out := []sandbox.MCPState{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name].now())
	}
	return out, nil
}

func (h *Host) stop(_ context.Context, c *rpc.Call) (any, error) {
	var p struct {
		ID string `json:"id"`
	}
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	s, err := h.named(p.ID, false)
	if s == nil || err != nil {
		return nil, err
	}
	if !h.background(func() { h.end(s) }) {
		return nil, errClosing
	}
	<-s.gone
	return nil, nil
}

// end stops a server and forgets it. Twice is once.
func (h *Host) end(s *server) {
	s.mu.Lock()
	first := !s.removed
	s.removed = true // a concurrent start gives up and releases the turn
	run := s.run
	s.mu.Unlock()
	if !first {
		<-s.gone
		return
	}
	if run != nil {
		run.end()
	}
	_ = s.take(context.Background())
	defer s.give()
	s.halt()
	h.mu.Lock()
	delete(h.servers, s.name)
	h.mu.Unlock()
	close(s.gone)
}

// call calls a tool, once for each id. Who asked may go away: the call goes on
// and its result is kept.
func (h *Host) call(ctx context.Context, c *rpc.Call) (any, error) {
	var p sandbox.MCPCall
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	if p.ID == "" || p.Server == "" || p.Tool == "" {
		return nil, fmt.Errorf("%w: a call needs an id, a server and a tool", rpc.ErrInvalid)
	}
	state, stored, done, err := h.config.Results.Begin(p.ID, p.Again)
	if err != nil {
		return nil, err
	}
	var fresh *sandbox.MCPResult
	switch state {
	case results.Done:
		return stored, nil
	case results.Lost:
		return sandbox.MCPResult{Lost: true}, nil
	case results.New:
		fresh = &sandbox.MCPResult{Error: errClosing.Error()}
		work := func() {
			*fresh = h.do(p)
			_ = h.config.Results.Finish(p.ID, fresh) // if the disk is full, who waits has it from memory
		}
		if !h.background(work) {
			return fresh, h.config.Results.Finish(p.ID, fresh)
		}
	}
	select {
	case <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if fresh != nil {
		return fresh, nil
	}
	return h.config.Results.Result(p.ID)
}

// do does a call. Whatever goes wrong is an Error in the result.
func (h *Host) do(p sandbox.MCPCall) sandbox.MCPResult {
	ctx := context.Background()
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	result, err := h.try(ctx, p)
	var said *problem
	switch {
	case err == nil && !fits(result):
		return sandbox.MCPResult{Error: fmt.Sprintf("the result of %s has more than %d MiB", p.Tool, maxResult>>20)}
	case err == nil:
		return sandbox.MCPResult{Result: result}
	case errors.Is(err, context.DeadlineExceeded):
		return sandbox.MCPResult{Error: fmt.Sprintf("the tool %s of %q did not answer within %v; it was told to stop", p.Tool, p.Server, p.Timeout)}
	case errors.As(err, &said) && said.Code != tooLong:
		return sandbox.MCPResult{Error: fmt.Sprintf("the MCP server %q answers: %v", p.Server, said)}
	case said != nil:
		return sandbox.MCPResult{Error: said.Message}
	}
	return sandbox.MCPResult{Error: err.Error()}
}

func (h *Host) try(ctx context.Context, p sandbox.MCPCall) (json.RawMessage, error) {
	s, err := h.named(p.Server, false)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("there is no MCP server %q; it has to be started first", p.Server)
	}
	run, err := s.session(ctx)
	if err != nil {
		return nil, err
	}
	args := p.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	return run.call(ctx, "tools/call", map[string]any{"name": p.Tool, "arguments": args})
}

// fits is true for what can travel. Encoding makes it longer, by six in the worst case.
func fits(result json.RawMessage) bool {
	if len(result) <= maxResult/6 {
		return true
	}
	b, err := json.Marshal(result)
	return err == nil && len(b) <= maxResult
}

// Serving reports whether servers run, or are about to.
func (h *Host) Serving() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.servers {
		s.mu.Lock()
		serving := s.run != nil && s.run.alive() || len(s.turn) > 0
		s.mu.Unlock()
		if serving {
			return true
		}
	}
	return false
}
