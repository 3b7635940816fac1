package agent_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/agent"
	"deckhand/internal/agent/idle"
	"deckhand/internal/conversation"
	"deckhand/internal/llm"
	"deckhand/internal/llm/scripted"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
	"deckhand/internal/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a loop on a log in memory, with the scripted model.
type rig struct {
	t          *testing.T
	log        *memlog.Log
	sessions   *session.Sessions
	grew       chan struct{}
	deltas     *fragments
	profile    func(ctx context.Context, st session.State) (agent.Profile, error)
	idle       time.Duration
	workspaces agent.Workspaces
	// patience is how long to wait for anything, where time is virtual.
	patience time.Duration
	// more changes what the next loop is made with.
	more func(*agent.Config)
	// faulted says that the loop may complain of an error: the test made one.
	faulted bool
	fault   atomic.Pointer[func(session.Batch) error]
}

// faulty is a log whose appends can be made to fail.
type faulty struct {
	session.Log
	fault *atomic.Pointer[func(session.Batch) error]
}

func (f faulty) Append(ctx context.Context, b session.Batch) error {
	if check := f.fault.Load(); check != nil {
		if err := (*check)(b); err != nil {
			return err
		}
	}
	return f.Log.Append(ctx, b)
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, log: memlog.New(), grew: make(chan struct{}, 1), deltas: &fragments{news: make(chan struct{}, 1)}}
	r.sessions = session.New(faulty{r.log, &r.fault})
	r.sessions.Observe(r)
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		return profile(scripted.New(scripted.Demo)), nil
	}
	return r
}

func profile(m llm.Model) agent.Profile {
	return agent.Profile{Agent: "CodeActAgent", Model: m, ModelName: scripted.Demo, System: agent.System(agent.SystemInput{}), MaxAsks: 10}
}

func (r *rig) Appended(session.ID, int64) {
	select {
	case r.grew <- struct{}{}:
	default:
	}
}

// start runs a loop until the test ends or stop is called.
func (r *rig) start() (stop func()) {
	config := agent.Config{Sessions: r.sessions, Log: r.log, Index: r.log, Profile: r.profile, Deltas: r.deltas, Delegate: conversation.New(conversation.Config{Sessions: r.sessions, Settings: settings.New(settings.NewMemStore(), nil, secret.NewRedactor())}).Delegate,
		Logger: slog.New(complaints{slog.DiscardHandler, r}), Workspaces: r.workspaces, Retry: agent.Retry{First: time.Millisecond}}
	if r.more != nil {
		r.more(&config)
	}
	loop := agent.New(config)
	r.sessions.Watch(loop)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = loop.Run(ctx) })
	running.Go(func() { idle.Close(ctx, r.sessions, r.log, r.idle, config.Logger) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	r.t.Cleanup(stop)
	return stop
}

// complaints fails a test in which the loop met an error that the test did not make.
type complaints struct {
	slog.Handler
	r *rig
}

func (complaints) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (c complaints) Handle(_ context.Context, rec slog.Record) error {
	if !c.r.faulted {
		var b strings.Builder
		rec.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&b, " %s", a); return true })
		c.r.t.Errorf("the loop complains: %s%s", rec.Message, b.String())
	}
	return nil
}

func (r *rig) create(first string) session.ID {
	r.t.Helper()
	id := session.NewID()
	var said *session.UserSaid
	var title []session.Payload
	if first != "" {
		said, title = &session.UserSaid{Text: first}, []session.Payload{session.Titled{Title: session.TitleFrom(first)}}
	}
	if _, err := r.sessions.Create(r.t.Context(), id, session.Created{Owner: "ada"}, said, title...); err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) update(id session.ID, rule func(session.State) ([]session.Payload, error)) session.State {
	r.t.Helper()
	st, err := r.sessions.Update(r.t.Context(), id, rule)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

// until waits for the session to be as wanted.
func (r *rig) until(id session.ID, what string, ok func(session.State) bool) session.State {
	r.t.Helper()
	timeout := time.After(cmp.Or(r.patience, 5*time.Minute))
	for {
		st, err := r.sessions.Load(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		if ok(st) {
			return st
		}
		select {
		case <-r.grew:
		case <-timeout:
			r.t.Fatalf("waited in vain for: %s; the state is %+v", what, st)
		}
	}
}

func (r *rig) events(id session.ID) []session.Payload {
	r.t.Helper()
	var out []session.Payload
	for e, err := range r.log.Read(r.t.Context(), id, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, e.Payload)
	}
	return out
}

func count[P session.Payload](events []session.Payload) (n int) {
	for _, e := range events {
		if _, ok := e.(P); ok {
			n++
		}
	}
	return n
}

// fragments records deltas and tells that there are some.
type fragments struct {
	mu    sync.Mutex
	text  strings.Builder
	ended int
	news  chan struct{}
}

func (f *fragments) Delta(_ session.ID, _, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text.WriteString(text)
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (f *fragments) Hold(session.ID, string, string) {}

func (f *fragments) soFar() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

func (f *fragments) EndDelta(session.ID, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended++
}

func answered(st session.State) bool { return st.Agent == session.AgentAwaitingUser && !st.Pending() }

func TestEmptyConversationRunsAndWaits(t *testing.T) {
	r := newRig(t)
	r.start()
	id := r.create("")
	st := r.until(id, "running", func(s session.State) bool { return s.Status() == session.Running })
	if st.Agent != session.AgentAwaitingUser || st.Wants() {
		t.Fatalf("agent %s, wants %v", st.Agent, st.Wants())
	}
	if n := count[session.ModelAsked](r.events(id)); n != 0 {
		t.Fatalf("the model was asked %d times about nothing", n)
	}
}

func TestFirstMessageIsAnswered(t *testing.T) {
	r := newRig(t)
	stop := r.start()
	id := r.create("Fix the flaky test in parser_test.go")
	st := r.until(id, "an answer", answered)
	stop()
	if st.Title != "Fix the flaky test in parser_test.go" {
		t.Errorf("title %q", st.Title)
	}
	var text string
	for _, e := range r.events(id) {
		if a, ok := e.(session.ModelAnswered); ok {
			text = a.Text
		}
	}
	if !strings.Contains(text, "scripted demo model") || !strings.Contains(text, "Fix the flaky test") {
		t.Errorf("answer %q", text)
	}
	if got := r.deltas.text.String(); got != text {
		t.Errorf("the fragments make %q", got)
	}
	if r.deltas.ended != 1 {
		t.Errorf("the fragments ended %d times", r.deltas.ended)
	}
}

func TestMessageDuringCallIsAnsweredNext(t *testing.T) {
	r := newRig(t)
	m := newGate()
	r.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
	r.start()
	id := r.create("one")
	<-m.asked
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "two"}) })
	m.release <- nil
	req := <-m.asked
	if got := req.Messages[len(req.Messages)-1].Text; got != "two" {
		t.Errorf("the second call ends with %q", got)
	}
	m.release <- nil
	r.until(id, "both answered", answered)
	if n := count[session.TurnEnded](r.events(id)); n != 2 {
		t.Errorf("%d turns", n)
	}
}

func TestStopAbortsTheCall(t *testing.T) {
	for name, rule := range map[string]func(session.State) ([]session.Payload, error){
		"stop":   func(s session.State) ([]session.Payload, error) { return s.Stop("enough") },
		"pause":  session.State.PauseNow,
		"delete": session.State.Delete,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			m := newGate()
			r.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
			r.start()
			id := r.create("go")
			<-m.asked
			r.update(id, rule)
			if err := <-m.aborted; !errors.Is(err, context.Canceled) {
				t.Fatalf("the call ended with %v", err)
			}
		})
	}
}

func TestPausedTurnGoesOn(t *testing.T) {
	r := newRig(t)
	m := newGate()
	r.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
	r.start()
	id := r.create("go")
	<-m.asked
	r.update(id, session.State.PauseNow)
	<-m.aborted
	r.update(id, session.State.Resume)
	<-m.asked
	m.release <- nil
	r.until(id, "an answer", answered)
}

func TestStoppedStartsAgainWithTheNextMessage(t *testing.T) {
	r := newRig(t)
	r.start()
	id := r.create("one")
	r.until(id, "an answer", answered)
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("") })
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "two"}) })
	st := r.until(id, "the second answer", func(s session.State) bool { return answered(s) && s.Status() == session.Running })
	if st.Claim == 0 {
		t.Error("the session has no holder")
	}
	if n := count[session.ModelAnswered](r.events(id)); n != 2 {
		t.Errorf("%d answers", n)
	}
}

func TestRestartMakesTheCallAgain(t *testing.T) {
	r := newRig(t)
	m := newGate()
	r.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
	stop := r.start()
	id := r.create("go")
	<-m.asked
	stop() // the server dies in the middle of the call

	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		return profile(scripted.New(scripted.Demo)), nil
	}
	r.start()
	r.until(id, "an answer after the restart", answered)
	events := r.events(id)
	if a, f, c := count[session.ModelAnswered](events), count[session.ModelFailed](events), count[session.Claimed](events); a != 1 || f != 1 || c != 2 {
		t.Errorf("%d answers, %d lost calls, %d claims", a, f, c)
	}
}

func TestTwoLoopsAnswerOnce(t *testing.T) {
	r := newRig(t)
	r.start()
	r.start()
	var ids []session.ID
	for range 20 {
		ids = append(ids, r.create("hello"))
	}
	for _, id := range ids {
		r.until(id, "an answer", answered)
		if n := count[session.ModelAnswered](r.events(id)); n != 1 {
			t.Errorf("%d answers to one message", n)
		}
	}
}

func TestFailedStartIsVisible(t *testing.T) {
	r := newRig(t)
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		return agent.Profile{}, &agent.ProfileError{ID: "STATUS$ERROR", Reason: "no such model"}
	}
	r.start()
	id := r.create("go")
	st := r.until(id, "the failure", func(s session.State) bool { return s.Status() == session.Halted })
	if st.Reason != "no such model" || st.ErrorID != "STATUS$ERROR" || !st.Pending() {
		t.Errorf("%+v", st)
	}
}

func TestLimits(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*agent.Profile)
		reason string
	}{
		"calls":  {func(p *agent.Profile) { p.MaxAsks = 0 }, "limit of 0 model calls"},
		"budget": {func(p *agent.Profile) { p.Budget, p.Info.Price = new(session.Money), llm.Price{Input: 3, Output: 15} }, "The budget of $0"},
		"model": {func(p *agent.Profile) {
			p.Model = failing{&llm.Error{Class: llm.ClassAuth, Message: "the key is wrong"}}
		}, "the key is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.profile = func(context.Context, session.State) (agent.Profile, error) {
				p := profile(scripted.New(scripted.Demo))
				test.change(&p)
				return p, nil
			}
			r.start()
			id := r.create("go")
			st := r.until(id, "the end of the turn", func(s session.State) bool { return s.Agent == session.AgentError })
			if !strings.Contains(st.Reason, test.reason) || st.Status() != session.Running || st.Wants() {
				t.Errorf("reason %q, status %s, wants %v", st.Reason, st.Status(), st.Wants())
			}
		})
	}
}

func TestIdleConversationIsClosed(t *testing.T) {
	r := newRig(t)
	r.idle = time.Millisecond
	r.start()
	id := r.create("")
	st := r.until(id, "stopped", func(s session.State) bool { return s.Status() == session.Halted })
	if !strings.Contains(st.Reason, "it was idle") {
		t.Errorf("reason %q", st.Reason)
	}
}

// gate is a model that answers when the test lets it.
type gate struct {
	asked   chan llm.Request
	release chan error
	aborted chan error
}

func newGate() *gate {
	return &gate{asked: make(chan llm.Request), release: make(chan error), aborted: make(chan error, 10)}
}

func (g *gate) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		select {
		case g.asked <- req:
		case <-ctx.Done():
		}
		select {
		case err := <-g.release:
			if err != nil {
				yield(llm.Part{}, err)
				return
			}
		case <-ctx.Done():
			g.aborted <- ctx.Err()
			yield(llm.Part{}, ctx.Err())
			return
		}
		if yield(llm.Part{Text: "done"}, nil) {
			yield(llm.Part{Done: &llm.Done{}}, nil)
		}
	}
}

type failing struct{ err error }

func (f failing) Stream(context.Context, llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) { yield(llm.Part{}, f.err) }
}

// A disk that fails once while an answer is stored must not leave the session stuck on its open call.
func TestAnswerThatCannotBeStoredIsAskedAgain(t *testing.T) {
	r := newRig(t)
	failed := false
	fault := func(b session.Batch) error {
		if _, ok := b.Events[0].Payload.(session.ModelAnswered); ok && !failed {
			failed = true
			return errors.New("the disk is full")
		}
		return nil
	}
	r.fault.Store(&fault)
	r.faulted = true
	r.start()
	id := r.create("hello")
	r.until(id, "an answer", answered)
	events := r.events(id)
	if a, f := count[session.ModelAnswered](events), count[session.ModelFailed](events); a != 1 || f != 1 {
		t.Errorf("%d answers, %d lost calls", a, f)
	}
}

// A message that arrives while a call fails is answered all the same.
func TestMessageDuringFailedCallIsNotPassedOver(t *testing.T) {
	r := newRig(t)
	m := newGate()
	r.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
	r.start()
	id := r.create("one")
	<-m.asked
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "two"}) })
	m.release <- &llm.Error{Class: llm.ClassOverload, Message: "busy"}
	req := <-m.asked
	if got := req.Messages[len(req.Messages)-1].Text; got != "two" {
		t.Errorf("the next call ends with %q", got)
	}
	m.release <- nil
	r.until(id, "an answer", answered)
}
