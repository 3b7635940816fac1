package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
)

// programTime bounds one start of a server in the sandbox, a little above what
// the runner itself allows: it has the better words.
const programTime = 75 * time.Second

var errNoBox = errors.New("it runs in the sandbox of a conversation and cannot be tested here")

// program is the link to a server inside the sandbox. The runner keeps the
// connection, so there is nothing to close here.
type program struct {
	def Server
	// box is asked for the sandbox when the tools are; calls bring their own.
	box func() tool.Box
	// withhold says why the server must not get the values of its Env now.
	withhold func(context.Context) (string, error)

	mu   sync.Mutex
	last *sandbox.Sandbox // that it was started in
}

// fresh is never true: the runner follows changes of the list, and asking it costs little.
func (p *program) fresh() bool { return false }

func (p *program) alive() bool { return true }

func (p *program) rest() {}

// close ends the server if its sandbox still runs; one that does not has ended it.
func (p *program) close() {
	p.mu.Lock()
	box := p.last
	p.mu.Unlock()
	if box == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	_ = box.MCPStop(ctx, p.def.Name)
}

func (p *program) tools(ctx context.Context) ([]offer, string, error) {
	open := p.box()
	if open == nil {
		return nil, "", errNoBox
	}
	box, err := open(ctx)
	if err != nil {
		return nil, "", plainly(err)
	}
	st, err := p.start(ctx, box)
	if err != nil {
		return nil, "", plainly(err)
	}
	offers, note := judge(describedBy(st.Tools))
	return offers, note, nil
}

// withheld is why a server with values in its environment is not started.
type withheld string

func (w withheld) Error() string { return string(w) }

// start starts it, or finds it running. One that must not have its values any more is stopped.
func (p *program) start(ctx context.Context, box *sandbox.Sandbox) (sandbox.MCPState, error) {
	ctx, cancel := context.WithTimeout(ctx, programTime)
	defer cancel()
	if len(p.def.Env) > 0 {
		reason, err := p.withhold(ctx)
		if err != nil {
			return sandbox.MCPState{}, err
		}
		if reason != "" {
			p.close()
			p.mu.Lock()
			p.last = nil
			p.mu.Unlock()
			return sandbox.MCPState{}, withheld(reason)
		}
	}
	words := sandbox.MCPServer{Name: p.def.Name, Command: p.def.Command, Args: p.def.Args, Env: map[string]string{}}
	for name, v := range p.def.Env {
		words.Env[name] = v.Reveal()
	}
	st, err := box.MCPStart(ctx, words)
	if err == nil {
		p.mu.Lock()
		p.last = box
		p.mu.Unlock()
	}
	return st, err
}

// startedIn is true if the runner there knows the server, and starts it again itself should it die.
func (p *program) startedIn(box *sandbox.Sandbox) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last == box
}

func describedBy(list []sandbox.MCPTool) []described {
	out := make([]described, len(list))
	for i, t := range list {
		var hints struct{ ReadOnlyHint, IdempotentHint bool }
		_ = json.Unmarshal(t.Annotations, &hints) // hints only
		out[i] = described{name: t.Name, title: t.Title, description: t.Description, schema: t.InputSchema,
			readOnly: hints.ReadOnlyHint, idempotent: hints.IdempotentHint}
	}
	return out
}

// call calls a tool. The runner remembers calls by their id, so that one that is
// made again is answered with what became of it.
func (p *program) call(ctx context.Context, open tool.Box, name string, call tool.Call) (answer, error) {
	box, err := open(ctx)
	if err != nil {
		return answer{}, err
	}
	if !p.startedIn(box) {
		// A call that was made before may have left its result, whether the server starts or not.
		if _, err := p.start(ctx, box); err != nil && !call.Repeats() {
			if why, ok := errors.AsType[withheld](err); ok {
				return answer{failed: p.def.sentence(string(why))}, nil
			}
			if _, refused := sandbox.Refusal(err); !refused {
				return answer{}, err
			}
			return answer{failed: p.def.sentence(plainly(err).Error())}, nil
		}
	}
	r, err := box.MCPCall(ctx, sandbox.MCPCall{ID: call.ID, Again: call.Repeats(), Server: p.def.Name, Tool: name,
		Args: arguments(call.Args), Timeout: p.def.timeout()})
	switch {
	case err != nil:
		return answer{}, err
	case r.Lost:
		return answer{unknown: true}, nil
	case r.Error != "":
		return answer{failed: p.def.sentence(r.Error)}, nil
	}
	return answer{raw: r.Result}, nil
}

// plainly is what the runner said, without who passed it on.
func plainly(err error) error {
	if words, ok := sandbox.Refusal(err); ok {
		return errors.New(words)
	}
	return err
}
