package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/admission"
	"deckhand/internal/agent"
	"deckhand/internal/agent/idle"
	"deckhand/internal/llm"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/tool/finish"
)

// server is one life of the process: a loop with sessions of its own on the
// store that all share.
type server struct {
	w        *world
	n        int
	dead     atomic.Bool
	sessions *session.Sessions
	cancel   context.CancelFunc
	ended    chan struct{}
	// asked is the last model call this server recorded for each session; the
	// store's lock guards it.
	asked map[session.ID]asked

	mu    sync.Mutex
	now   time.Time
	reads int // since now
	// apart is until when it does not reach the leases.
	apart time.Time

	queue queue
}

// asked is a ModelAsked event.
type asked struct {
	number, upTo int64
	purpose      string
	reserved     session.Money
}

// boot starts a server, which becomes the one that people reach.
func (w *world) boot() {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{w: w, n: w.booted(), cancel: cancel, ended: make(chan struct{}), asked: map[session.ID]asked{}}
	d := reach{w.store, s}
	s.sessions = session.New(d, session.WithCache(w.rules.cache))
	config := agent.Config{Sessions: s.sessions, Log: d, Index: d, Profile: s.profile, Workspaces: workspaces{s}, Deltas: silence{},
		Logger: slog.New(watchman{w}), Approval: w.rules.approval}
	switch {
	case w.rules.limits.Running > 0 && w.members == nil: // takeovers are timed
		config.Admission = admission.New(w.rules.limits)
	case w.rules.shared:
		s.shareQueue(&config)
	}
	if w.rules.recall {
		config.Recall = s.recall
	}
	if w.members != nil {
		s.join(&config)
	}
	loop := agent.New(config)
	s.sessions.Watch(loop)
	w.mu.Lock()
	switch {
	case w.members != nil:
		w.peers = append(w.peers, s)
	case w.front != nil && !w.front.dead.Load():
		w.older = append(w.older, w.front)
	}
	w.front = s
	w.mu.Unlock()
	go func() {
		defer close(s.ended)
		var running sync.WaitGroup
		running.Go(func() { idle.Close(ctx, s.sessions, d, w.rules.idleAfter, config.Logger) })
		if w.rules.shared {
			running.Go(func() { s.queue.run(ctx, s) })
		}
		_ = loop.Run(ctx)
		running.Wait()
	}()
}

// booted counts servers.
func (w *world) booted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started++
	return w.started
}

// crash ends a server in the middle of whatever it does: nothing it does from
// here on reaches anybody.
func (s *server) crash() {
	s.dead.Store(true)
	s.cancel()
	s.w.bury(s)
}

// stop lets a server end in its own way.
func (s *server) stop() {
	s.cancel()
	<-s.ended
	s.dead.Store(true)
	s.w.bury(s)
}

// busy is how often a server may read in one moment.
const busy = 20_000

// spins is true for a dead server, and for one that goes round in circles: time
// would stand still, so that one is put to death.
func (s *server) spins() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now != s.now {
		s.now, s.reads = now, 0
	}
	if s.reads++; s.reads == busy {
		s.w.breach("server %d goes round in circles without waiting for anything", s.n)
		s.dead.Store(true)
		s.cancel()
	}
	return s.dead.Load()
}

// bury waits for what is left of a dead server.
func (w *world) bury(s *server) {
	w.background.Go(func() { <-s.ended })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.older = slices.DeleteFunc(w.older, func(x *server) bool { return x == s })
	w.peers = slices.DeleteFunc(w.peers, func(x *server) bool { return x == s })
	if w.front == s && len(w.peers) > 0 {
		w.front = w.peers[0]
	}
}

// current is the server that people reach, which may have died, and older are
// those that it replaced and that do not know it.
func (w *world) current() (current *server, older []*server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.front, slices.Clone(w.older)
}

// price makes the budget matter: a call reserves about a cent.
var price = llm.Price{Input: 1, Output: 5, CacheRead: 0.1, CacheWrite: 1.25}

// maxOutput is how many tokens an answer may have.
const maxOutput = 400

func (s *server) profile(_ context.Context, st session.State) (agent.Profile, error) {
	w := s.w
	if w.strikes(w.dice("profile", st.ID, st.Last), 8) {
		w.fault("settings do not answer")
		return agent.Profile{}, errDisk
	}
	limit := w.budget()
	return agent.Profile{Agent: "CodeActAgent", Model: &model{s}, ModelName: "sim/model", System: "You are simulated.", MaxAsks: w.rules.maxAsks, Budget: &limit,
		Info:  llm.Info{Window: w.rules.window, MaxOutput: maxOutput, Price: price, Priced: true, Tools: true},
		Tools: []tool.Tool{local{s}, remote{s}, finish.Tool{}}, Confirm: w.rules.confirm, Analyzer: w.rules.analyzer, Condense: w.rules.condense}, nil
}

func (s *server) recall(ctx context.Context, st session.State, said session.UserSaid, _ agent.Occasion) (session.Recalled, error) {
	r := s.w.dice("recall", st.ID, said.Text)
	if err := pass(ctx, upTo(r, 100*time.Millisecond)); err != nil {
		return session.Recalled{}, err
	}
	if s.w.strikes(r, 50) {
		s.w.fault("recall failed")
		return session.Recalled{}, errors.New("no memory")
	}
	if r.IntN(2) == 0 {
		return session.Recalled{}, nil
	}
	return session.Recalled{Text: "Something to know."}, nil
}

// workspaces gives every session a connection that is lost already: tools here
// do not speak to a runner, but starting it is recorded, and may fail.
type workspaces struct{ s *server }

// Use implements agent.Workspaces.
func (p workspaces) Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error) {
	w := p.s.w
	r := w.dice("use", id)
	if err := pass(ctx, upTo(r, 5*time.Second)); err != nil {
		return nil, nil, err
	}
	switch {
	case w.strikes(r, 10):
		w.fault("sandbox unavailable")
		return nil, nil, &sandbox.Unavailable{Reason: "there is no engine"}
	case w.strikes(r, 10):
		w.fault("sandbox does not start")
		return nil, nil, errDisk
	case w.strikes(r, 20):
		w.fault("sandbox not reached")
		return nil, nil, sandbox.ErrLost
	}
	handle := fmt.Appendf(nil, `{"id":%q,"boot":%d}`, id, w.box(id).boots())
	_, err := p.s.sessions.Update(ctx, id, func(st session.State) ([]session.Payload, error) {
		return st.Prepared(st.Claim, session.WorkspaceReady{Handle: handle})
	})
	return lostSandbox, func() {}, err
}

type silence struct{}

func (silence) Delta(session.ID, string, string) {}
func (silence) Hold(session.ID, string, string)  {}
func (silence) EndDelta(session.ID, string)      {}

// watchman reads the loop's own words for admissions of a mistake.
type watchman struct{ w *world }

func (watchman) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (m watchman) WithAttrs([]slog.Attr) slog.Handler             { return m }
func (m watchman) WithGroup(string) slog.Handler                  { return m }

func (m watchman) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		text := a.Value.String()
		for _, bad := range []string{"panicked", "does not know how to go on", session.ErrCorrupt.Error()} {
			if strings.Contains(text, bad) {
				m.w.breach("the loop says: %s: %s", r.Message, text)
			}
		}
		return true
	})
	return nil
}
