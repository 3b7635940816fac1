package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"deckhand/internal/tool"
)

// Set is the tool servers of one session. It may be used concurrently.
type Set struct {
	pool    *Pool
	session string
	// ctx ends with the set, and with it what is under way.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	config  Config
	servers []*server
	names   *names
	idle    *time.Timer
	calls   int
	closed  bool
}

func newSet(p *Pool, session string) *Set {
	s := &Set{pool: p, session: session, names: newNames()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.idle = time.AfterFunc(p.idle, s.rest)
	return s
}

// update takes a new configuration. Servers that are in both go on as they are.
func (s *Set) update(c Config) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s.mu.Lock()
	old := s.servers
	s.config, s.servers = c, nil
	s.names.reserve(c.Reserved)
	for _, def := range c.Servers {
		at := slices.IndexFunc(old, func(o *server) bool { return same(o.def, def) })
		if at >= 0 {
			s.servers = append(s.servers, old[at])
			old = slices.Delete(slices.Clone(old), at, at+1)
			continue
		}
		srv := &server{def: def, set: s, state: Stopped, since: s.pool.now()}
		if def.Kind == Stdio {
			srv.link = &program{def: def, box: s.box, withhold: s.withhold}
		} else {
			srv.link = newRemote(def, c.Client, s.session)
		}
		s.servers = append(s.servers, srv)
	}
	s.mu.Unlock()
	for _, o := range old {
		o.remove()
		s.background(o.link.close)
	}
}

func (s *Set) box() tool.Box {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Box
}

// withhold says why servers must not get the values of their environments now.
func (s *Set) withhold(ctx context.Context) (string, error) {
	s.mu.Lock()
	ask := s.config.Withhold
	s.mu.Unlock()
	if ask == nil {
		return "", nil
	}
	return ask(ctx)
}

// background does something that close waits for; false if it is too late.
func (s *Set) background(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(f)
	return true
}

func (s *Set) all() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.servers)
}

// Tools are the tools of all servers that are ready. Servers that are not are
// started, all at once, and waited for a while: 10 seconds at an address, a
// minute in the sandbox. One that failed or took too long is started again now
// and then, but not waited for.
func (s *Set) Tools(ctx context.Context) []tool.Tool {
	s.enter()
	defer s.leave()
	all := s.all()
	begun := time.Now()
	started := make([]<-chan struct{}, len(all))
	for i, srv := range all {
		started[i] = srv.begin(false)
	}
	for i, srv := range all {
		srv.await(ctx, started[i], begun)
	}
	var out []tool.Tool
	for _, h := range s.shares() {
		for _, o := range h.offers {
			out = append(out, &foreign{server: h.server, offer: o, name: s.name(h.server, o)})
		}
	}
	return out
}

// share is what there is room for of a server's tools.
type share struct {
	server *server
	offers []offer
	status Status
}

// shares divides the room: servers that come first are served first.
func (s *Set) shares() []share {
	s.mu.Lock()
	servers, room := slices.Clone(s.servers), s.config.Room
	s.mu.Unlock()
	limited, out := room > 0, make([]share, len(servers))
	for i, srv := range servers {
		offers, st := srv.offered()
		if limited && len(offers) > room {
			st.Error = fmt.Sprintf("Only %d of its %d tools are used: the limit for all MCP servers together is reached.", room, len(offers))
			offers = offers[:room]
		}
		room -= len(offers)
		for _, o := range offers {
			st.Tools = append(st.Tools, s.name(srv, o))
		}
		out[i] = share{srv, offers, st}
	}
	return out
}

// States says where the servers stand. It starts nothing.
func (s *Set) States() []Status {
	var out []Status
	for _, h := range s.shares() {
		out = append(out, h.status)
	}
	return out
}

// status is that of a server which may be gone already.
func (s *Set) status(srv *server) Status {
	for _, h := range s.shares() {
		if h.server == srv {
			return h.status
		}
	}
	_, st := srv.offered()
	return st
}

func (s *Set) name(srv *server, o offer) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.of(toolKey{srv.def.Name, o.name})
}

// report tells of a server's failure, of its end, or of a start that takes long.
func (s *Set) report(srv *server, late bool) {
	st := s.status(srv)
	st.Late = late && st.State == Starting
	s.mu.Lock()
	c := s.config
	s.mu.Unlock()
	c.Logger.Info("tool server", "session", s.session, "server", st.Name, "state", st.State, "error", st.Error)
	if c.Report != nil {
		c.Report(st)
	}
}

// enter and leave stand around every use: a set that is used is not idle.
func (s *Set) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.idle.Stop()
}

func (s *Set) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls--; s.calls == 0 && !s.closed {
		s.idle.Reset(s.pool.idle)
	}
}

// rest closes the connections of a set that was unused for a while. The names of its tools are
// kept.
func (s *Set) rest() {
	s.background(func() {
		s.mu.Lock()
		busy := s.calls > 0
		s.mu.Unlock()
		if busy {
			return
		}
		for _, srv := range s.all() {
			srv.rest()
		}
	})
}

// close ends everything and waits for it.
func (s *Set) close() {
	s.mu.Lock()
	s.closed = true
	s.idle.Stop()
	all := s.servers
	s.mu.Unlock()
	s.cancel()
	var ending sync.WaitGroup
	for _, srv := range all {
		srv.remove()
		ending.Go(srv.link.close)
	}
	ending.Wait()
	s.work.Wait()
}
