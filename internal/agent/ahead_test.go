package agent_test

import (
	"context"
	"encoding/json"
	"iter"
	"sync/atomic"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// slowCaller is a model that begins to call a tool and completes the call when the test says so.
type slowCaller struct {
	tool     string
	complete <-chan struct{}
}

func (m slowCaller) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		if req.Messages[len(req.Messages)-1].Role == llm.ToolResult {
			_ = yield(llm.Part{Text: "Done."}, nil) && yield(llm.Part{Done: &llm.Done{}}, nil)
			return
		}
		if req.Calling != nil {
			req.Calling(m.tool)
			req.Calling(m.tool)
		}
		select {
		case <-m.complete:
		case <-ctx.Done():
			yield(llm.Part{}, ctx.Err())
			return
		}
		_ = yield(llm.Part{Call: &llm.Call{ID: "c", Name: m.tool, Args: json.RawMessage(`{}`)}}, nil) && yield(llm.Part{Done: &llm.Done{}}, nil)
	}
}

// countedPlace counts how often its sandbox is asked for.
type countedPlace struct {
	place
	uses *atomic.Int32
	used chan struct{}
}

func (p countedPlace) Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error) {
	if p.uses.Add(1) == 1 {
		close(p.used)
	}
	return p.place.Use(ctx, id)
}

// The sandbox is started when the model begins to call a tool, before the call is complete.
func TestSandboxStartsWhileTheModelCalls(t *testing.T) {
	r := newRig(t)
	p := countedPlace{there(t), &atomic.Int32{}, make(chan struct{})}
	r.workspaces = p
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		out := profile(slowCaller{"execute_bash", p.used})
		out.Tools = []tool.Tool{shell{func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "hi"}, nil }}}
		return out, nil
	}
	r.start()
	id := r.create("Say hi.")
	r.until(id, "the answer", answered) // the call is completed by the start
	if got := r.result(id); got.Outcome != session.Succeeded || p.uses.Load() != 2 {
		t.Errorf("%+v after %d uses of the sandbox, wanted one ahead of the call and one for it", got, p.uses.Load())
	}
}

// thought is a tool that needs no sandbox.
type thought struct{}

func (thought) Spec() tool.Spec { return tool.Spec{Name: "think"} }

func (thought) Run(context.Context, tool.Box, tool.Call) (tool.Result, error) {
	return tool.Result{Text: "hm"}, nil
}

// A call that needs no sandbox starts none.
func TestNoSandboxForThoughts(t *testing.T) {
	r := newRig(t)
	p := countedPlace{there(t), &atomic.Int32{}, make(chan struct{})}
	r.workspaces = p
	complete := make(chan struct{})
	close(complete)
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		out := profile(slowCaller{"think", complete})
		out.Tools = []tool.Tool{thought{}}
		return out, nil
	}
	r.start()
	r.until(r.create("Think."), "the answer", answered)
	if n := p.uses.Load(); n != 0 {
		t.Errorf("the sandbox was asked for %d times", n)
	}
}
