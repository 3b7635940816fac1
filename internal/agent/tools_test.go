package agent_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm/scripted"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// place is a workspace that is there at once, or never.
type place struct {
	box *sandbox.Sandbox
	err error
}

func (p place) Use(context.Context, session.ID) (*sandbox.Sandbox, func(), error) {
	return p.box, func() {}, p.err
}

// there is a place with a runner that only says hello and forgets results.
func there(t *testing.T) place {
	t.Helper()
	ours, theirs := net.Pipe()
	nothing := func(context.Context, *rpc.Call) (any, error) { return nil, nil }
	peer, err := rpc.Accept(theirs, rpc.Handlers{Calls: map[string]rpc.Handler{"hello": nothing, "ack": nothing}})
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.Connect(t.Context(), sandbox.Link{ID: "x", Conn: ours})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close(); peer.Close() })
	return place{box: box}
}

// shell is a tool that does what a test says.
type shell struct {
	run func(ctx context.Context, c tool.Call) (tool.Result, error)
}

func (shell) Spec() tool.Spec { return tool.Spec{Name: "execute_bash", Sandbox: true} }

func (s shell) Run(ctx context.Context, open tool.Box, c tool.Call) (tool.Result, error) {
	if _, err := open(ctx); err != nil {
		return tool.Result{}, err
	}
	return s.run(ctx, c)
}

// withTool gives the demo model a tool.
func (r *rig) withTool(warm bool, run func(ctx context.Context, c tool.Call) (tool.Result, error)) {
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		p := profile(scripted.New(scripted.Demo))
		p.Tools, p.Warm = []tool.Tool{shell{run}}, warm
		return p, nil
	}
}

// result is the one result in the log.
func (r *rig) result(id session.ID) session.ToolReturned {
	r.t.Helper()
	for _, p := range r.events(id) {
		if t, ok := p.(session.ToolReturned); ok {
			return t
		}
	}
	r.t.Fatal("no call has a result")
	return session.ToolReturned{}
}

func TestToolIsCalledAndAnswered(t *testing.T) {
	r := newRig(t)
	r.workspaces = there(t)
	r.withTool(false, func(_ context.Context, c tool.Call) (tool.Result, error) {
		if c.Again {
			return tool.Result{}, errors.New("a fresh call is taken for an old one")
		}
		c.Live([]byte("out"))
		return tool.Result{Text: "output of " + string(c.Args)}, nil
	})
	r.start()
	id := r.create("$ date")
	r.until(id, "the answer", answered)
	if got := r.result(id); got.Outcome != session.Succeeded || !strings.Contains(got.Output, "date") {
		t.Errorf("%+v", got)
	}
	if n := count[session.ModelAsked](r.events(id)); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// What the sandbox refuses is a result that the model can learn from; retries are bounded.
func TestRefusedCallIsAResult(t *testing.T) {
	r := newRig(t)
	r.workspaces = there(t)
	r.withTool(false, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, &rpc.Error{Message: "the shell cannot be started"}
	})
	r.start()
	id := r.create("$ date")
	r.until(id, "the answer", answered)
	if got := r.result(id); got.Outcome != session.FailedRun || !strings.Contains(got.Output, "the shell cannot be started") {
		t.Errorf("%+v", got)
	}
}

// A sandbox that was lost is asked again, and told that it may know the call.
func TestLostCallIsLookedUp(t *testing.T) {
	r := newRig(t)
	r.workspaces = there(t)
	var calls atomic.Int32
	r.withTool(false, func(_ context.Context, c tool.Call) (tool.Result, error) {
		if calls.Add(1) == 1 {
			return tool.Result{}, sandbox.ErrLost
		}
		if !c.Again {
			return tool.Result{}, errors.New("the second attempt does not say that it is one")
		}
		return tool.Result{Text: "found", Unknown: true}, nil
	})
	r.start()
	id := r.create("$ date")
	r.until(id, "the answer", answered)
	if got := r.result(id); got.Outcome != session.Unknown || calls.Load() != 2 {
		t.Errorf("%+v after %d calls", got, calls.Load())
	}
}

// A sandbox that was lost before the call got it has not begun the call, so the next
// one is not told that the call may be known.
func TestSandboxLostBeforeTheCall(t *testing.T) {
	r := newRig(t)
	r.workspaces = &dying{place: there(t), left: 2}
	r.withTool(false, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: "ran", Unknown: c.Again && c.Up}, nil
	})
	r.start()
	id := r.create("$ date")
	r.until(id, "the answer", answered)
	if got := r.result(id); got.Outcome != session.Succeeded {
		t.Errorf("%+v", got)
	}
}

// dying is a workspace whose sandbox is lost so many times while it is attached to.
type dying struct {
	place
	mu   sync.Mutex
	left int
}

func (d *dying) Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left > 0 {
		d.left--
		return nil, nil, sandbox.ErrLost
	}
	return d.place.Use(ctx, id)
}

// No sandbox ends in STOPPED with the reason, whichever part notices first: the tool
// that needs it, or the start ahead of need. The call was not run, and its result
// says so.
func TestNoSandboxIsSaid(t *testing.T) {
	none := &sandbox.Unavailable{Reason: "there is no engine"}
	for name, c := range map[string]struct {
		warm bool
		// use is asked for the sandbox; called is closed when the call is in the log.
		use func(ctx context.Context, called <-chan struct{}, n int32) (*sandbox.Sandbox, error)
	}{
		"when needed": {false, func(context.Context, <-chan struct{}, int32) (*sandbox.Sandbox, error) { return nil, none }},
		"ahead of need": {true, func(_ context.Context, called <-chan struct{}, _ int32) (*sandbox.Sandbox, error) {
			<-called
			return nil, none
		}},
		"after a restart": {false, func(ctx context.Context, called <-chan struct{}, n int32) (*sandbox.Sandbox, error) {
			if n > 1 {
				return nil, none
			}
			<-called
			<-ctx.Done()
			return nil, ctx.Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			called, asked := make(chan struct{}), make(chan struct{}, 10)
			var n atomic.Int32
			r.workspaces = using(func(ctx context.Context) (*sandbox.Sandbox, error) {
				asked <- struct{}{}
				return c.use(ctx, called, n.Add(1))
			})
			r.withTool(c.warm, nil)
			stop := r.start()
			id := r.create("$ date")
			r.until(id, "the call", func(st session.State) bool { return st.Failed || len(st.Open) > 0 })
			close(called)
			if name == "after a restart" {
				<-asked
				stop()
				r.start()
			}
			st := r.until(id, "the failure", func(st session.State) bool { return st.Failed })
			if st.Reason != "there is no engine" || st.Status() != session.Halted {
				t.Errorf("%+v", st)
			}
			if got := r.result(id); got.Outcome != session.Cancelled || got.Output != "Not run. there is no engine" {
				t.Errorf("a call that was not run is %+v", got)
			}
		})
	}
}

// A sandbox that cannot be had again says nothing of a call that was handed to it.
func TestLostCallStaysUnknown(t *testing.T) {
	r := newRig(t)
	box := there(t).box
	var n atomic.Int32
	r.workspaces = using(func(context.Context) (*sandbox.Sandbox, error) {
		if n.Add(1) > 1 {
			return nil, &sandbox.Unavailable{Reason: "there is no engine"}
		}
		return box, nil
	})
	r.withTool(false, func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, sandbox.ErrLost })
	r.start()
	id := r.create("$ date")
	r.until(id, "the failure", func(st session.State) bool { return st.Failed })
	if got := r.result(id); got.Outcome != session.Unknown {
		t.Errorf("%+v", got)
	}
}

// using is a workspace whose sandbox a test gives.
type using func(ctx context.Context) (*sandbox.Sandbox, error)

func (u using) Use(ctx context.Context, _ session.ID) (*sandbox.Sandbox, func(), error) {
	box, err := u(ctx)
	return box, func() {}, err
}

// A start ahead of need: the model is asked at the same time, and the session is
// STARTING until the sandbox is there.
func TestSandboxIsStartedBesideTheModel(t *testing.T) {
	r := newRig(t)
	ready := make(chan struct{})
	r.workspaces = slow{there(t), r, ready}
	r.withTool(true, nil)
	r.start()
	id := r.create("hello")
	st := r.until(id, "the answer", func(st session.State) bool { return st.Answer > 0 && !st.InTurn })
	if st.Status() != session.Starting {
		t.Errorf("it is %s without its sandbox", st.Status())
	}
	close(ready)
	r.until(id, "the sandbox", func(st session.State) bool { return st.Status() == session.Running && !st.Wants() })
}

// slow is a workspace that takes its time and says so in the log, as the keeper does.
type slow struct {
	place
	r     *rig
	ready chan struct{}
}

func (s slow) Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	_, err := s.r.sessions.Update(ctx, id, func(st session.State) ([]session.Payload, error) {
		return st.Prepared(st.Claim, session.WorkspaceReady{Handle: []byte(`{"id":"x"}`)})
	})
	return s.box, func() {}, err
}
