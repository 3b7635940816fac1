package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// MaxDepth is how many conversations may stand above one that delegates.
const MaxDepth = conversation.MaxDepth

type delegateArgs struct {
	Agent  string `json:"agent"`
	Inputs struct {
		Task string `json:"task"`
	} `json:"inputs"`
	Budget float64 `json:"max_budget"`
}

// delegate has the child created, waits for the end of its turn, and settles what it
// spent. Made again after a restart, it finds the child that it made before.
func (l *Loop) delegate(ctx context.Context, w *worker, p Profile, st session.State, c tool.Call) (tool.Result, error) {
	var a delegateArgs
	if err := json.Unmarshal(c.Args, &a); err != nil {
		a.Inputs.Task = ""
	}
	child := childOf(w.id, c.ID)
	err := l.Delegate(ctx, conversation.Delegate{Parent: st, Child: child, Agent: a.Agent, Task: a.Inputs.Task, Reserve: func(ctx context.Context) (session.State, error) {
		return l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
			return s.GrantTo(w.claim, child, session.FromDollars(a.Budget), p.Budget)
		})
	}})
	if refused, ok := errors.AsType[*conversation.Refusal](err); ok {
		return tool.Result{Failed: true, Text: refused.Text}, nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	done, err := l.awaitTurn(ctx, child)
	if err != nil && errors.Is(context.Cause(ctx), errLeft) {
		return tool.Result{}, errors.Join(err, l.unwanted(ctx, w.id, child, c.ID))
	}
	if err != nil {
		return tool.Result{}, err
	}
	said, err := l.lastWords(ctx, child)
	if err != nil {
		return tool.Result{}, err
	}
	if err := l.settleChild(ctx, w.id, child); err != nil {
		return tool.Result{}, err
	}
	return delegated(child, a, done, said), nil
}

// delegated is the child's end in words.
func delegated(child session.ID, a delegateArgs, st session.State, said string) tool.Result {
	r := tool.Result{Text: said}
	if st.ErrorID != "" || st.Status() == session.Halted {
		r.Failed = true
		r.Text = strings.TrimSpace(fmt.Sprintf("The delegated task did not finish: %s\n%s", st.Reason, said))
	}
	r.Details, _ = json.Marshal(map[string]any{"outputs": map[string]string{"content": r.Text, "conversation_id": string(child), "agent": a.Agent}})
	return r
}

// childOf is the same for the same call, also after a restart.
func childOf(parent session.ID, call string) session.ID {
	sum := sha256.Sum256([]byte(string(parent) + "\x00" + call))
	return session.ID(hex.EncodeToString(sum[:16]))
}

// awaitTurn waits until a session has nothing to do any more.
func (l *Loop) awaitTurn(ctx context.Context, id session.ID) (session.State, error) {
	grew := make(chan struct{}, 1)
	l.mu.Lock()
	if l.watched[id] == nil {
		l.watched[id] = map[chan struct{}]bool{}
	}
	l.watched[id][grew] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.watched[id], grew); len(l.watched[id]) == 0 {
			delete(l.watched, id)
		}
	}()
	for {
		st, err := l.Sessions.Load(ctx, id)
		if err != nil {
			return st, err
		}
		if _, asked := st.Awaiting(); !st.Wants() && !asked && !st.Paused {
			return st, nil
		}
		select {
		case <-ctx.Done():
			return st, ctx.Err()
		case <-grew:
		}
	}
}

// lastWords is what the agent said last.
func (l *Loop) lastWords(ctx context.Context, id session.ID) (string, error) {
	words := ""
	for e, err := range l.Log.Read(ctx, id, 0) {
		if err != nil {
			return "", err
		}
		switch p := e.Payload.(type) {
		case session.ModelAnswered:
			if p.Purpose == "" && p.Text != "" {
				words = p.Text
			}
		case session.ToolReturned:
			if p.Ends && p.Output != "" {
				words = p.Output
			}
		}
	}
	return words, nil
}

// settleChild makes what the child spent all that it may ever spend, and then
// frees the rest: in this order, so that nothing is spent twice.
func (l *Loop) settleChild(ctx context.Context, parent, child session.ID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
	defer cancel()
	st, err := l.Sessions.Update(ctx, child, func(s session.State) ([]session.Payload, error) {
		if !s.Limited { // no budget was reserved for it, so people may continue it
			return nil, nil
		}
		return s.Cap()
	})
	if err != nil {
		return err
	}
	_, err = l.Sessions.Update(ctx, parent, func(s session.State) ([]session.Payload, error) {
		if _, open := s.Granted(child); !open && s.Counted(child) {
			return nil, nil
		}
		return s.Settle(child, st.Committed())
	})
	return err
}

// unwanted abandons the child unless the call is still open: then only its owner
// changed, and the new one waits for the same child.
func (l *Loop) unwanted(ctx context.Context, parent, child session.ID, call string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
	defer cancel()
	st, err := l.Sessions.Load(ctx, parent)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	for _, open := range st.Open {
		if callID(open) == call {
			return nil
		}
	}
	return l.abandon(ctx, parent, child)
}

// abandon stops the child of a call that is not wanted any more.
func (l *Loop) abandon(ctx context.Context, parent, child session.ID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
	defer cancel()
	_, err := l.Sessions.Update(ctx, child, func(s session.State) ([]session.Payload, error) {
		return s.Stop("the conversation that asked for it was stopped")
	})
	if err != nil {
		return err
	}
	return l.settleChild(ctx, parent, child)
}

// settleGrants settles what children of ended calls have left open: a server
// died between the end of the call and the settlement.
func (l *Loop) settleGrants(ctx context.Context, w *worker, st session.State) (session.State, error) {
	for _, g := range st.Grants {
		if err := l.abandon(ctx, w.id, g.Child); err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrDeleted) {
			return st, err
		} else if err != nil { // it was never made, or is gone: what it may have spent counts as spent
			cost := g.Amount
			if errors.Is(err, session.ErrNotFound) {
				cost = 0
			}
			if _, err := l.Sessions.Update(ctx, w.id, func(s session.State) ([]session.Payload, error) { return s.Settle(g.Child, cost) }); err != nil {
				return st, err
			}
		}
	}
	return l.Sessions.Load(ctx, w.id)
}

// root is the session whose workspace this one works in, and the claim under
// which its sandbox takes commands: that of the topmost conversation.
func (l *Loop) root(ctx context.Context, st session.State, w *worker) (session.ID, func() int64) {
	top := l.top(ctx, st)
	if top.ID == st.ID {
		return w.id, func() int64 { return w.claim }
	}
	return top.ID, func() int64 {
		now, err := l.Sessions.Load(ctx, top.ID)
		if err != nil {
			return 0
		}
		return now.Claim
	}
}

// up says whether the sandbox was started before.
func (l *Loop) up(ctx context.Context, st session.State) bool { return l.top(ctx, st).Up }

func (l *Loop) top(ctx context.Context, st session.State) session.State {
	for range MaxDepth + 1 {
		if st.Created.Parent == "" {
			break
		}
		up, err := l.Sessions.Load(ctx, st.Created.Parent)
		if err != nil {
			break
		}
		st = up
	}
	return st
}

// orphaned is true for a session whose parent is stopped: it would work in a
// workspace that is closed.
func (l *Loop) orphaned(ctx context.Context, st session.State) bool {
	if st.Created.Parent == "" {
		return false
	}
	parent, err := l.Sessions.Load(ctx, st.Created.Parent)
	return errors.Is(err, session.ErrNotFound) || err == nil && parent.Status() == session.Halted
}

// shellOf is the shell a session's commands run in: a child has its own, so that
// it does not move the folder from under its parent.
func shellOf(st session.State) string {
	if st.Created.Parent == "" {
		return ""
	}
	return "child-" + string(st.ID)[:min(8, len(st.ID))]
}
