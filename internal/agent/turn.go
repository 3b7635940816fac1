package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// step makes one model call and records how it ended. The first one of a turn
// also begins it: there is nothing to record before.
func (l *Loop) step(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if err := t.advance(ctx, l.Log, st); err != nil {
		return st, err
	}
	if !w.isAsking(st) {
		var err error
		if st, err = l.prepareCall(ctx, w, st, p, t); err != nil || !w.isAsking(st) {
			return st, err
		}
	}
	call := st.Ask.Call
	answer, err := l.ask(ctx, w, p, t, call)
	defer l.Deltas.EndDelta(w.id, call)
	switch {
	case err != nil && ctx.Err() != nil: // shutdown: the next owner makes the call again
		return st, err
	case errors.Is(err, errLeft):
		return l.left(ctx, w, err)
	case err != nil:
		return l.askFailed(ctx, w, p, t, st, err)
	}
	return l.record(ctx, w, p, st, answer)
}

// begin begins a turn and asks nothing.
func (l *Loop) begin(ctx context.Context, w *worker, p Profile, t *transcript) (session.State, error) {
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) { return s.BeginTurn(w.claim) })
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// left decides how to continue after a rule refused an append. Usually the user stopped or
// paused the session, and its state shows what to do. If only this loop changed the session, the
// refusal is a bug in the loop, and retrying would repeat it.
func (l *Loop) left(ctx context.Context, w *worker, why error) (session.State, error) {
	if !errors.Is(why, session.ErrRefused) && !errors.Is(why, errLeft) {
		return session.State{}, why
	}
	others := w.dirty.Swap(false)
	st, err := l.Sessions.Load(ctx, w.id)
	switch {
	case err != nil || st.Claim != w.claim: // what others did is the next worker's to see
		if others {
			w.dirty.Store(true)
		}
	case !others && st.Wants() && st.InTurn:
		// Not wrapped: callers that check for a refusal would take it for a user's request.
		err = fmt.Errorf("the loop does not know how to go on after event %d: %v", st.Last, why)
	}
	return st, err
}

// answer is all that the model said in one call.
type answer struct {
	text      string
	reasoning string
	calls     []session.ToolCall
	done      *llm.Done
}

// ruleCut is the rule of the loop's word about an answer that was cut.
const ruleCut = "cut"

// record settles the call. An answer that calls no tool also ends the turn; one that does has its first call begun.
func (l *Loop) record(ctx context.Context, w *worker, p Profile, asked session.State, a answer) (session.State, error) {
	u := a.done.Usage
	final := len(a.calls) == 0 && !a.done.Cut
	answered := session.ModelAnswered{Call: asked.Ask.Call, Text: p.mask(a.text), Reasoning: p.mask(a.reasoning), ToolCalls: a.calls, Final: final,
		Raw: a.done.Raw, Cut: a.done.Cut, Cost: cost(p.Info.Price, u), Usage: session.Usage(u)}
	if answered.Usage.Window == 0 {
		answered.Usage.Window = p.Info.Window
	}
	w.retries, w.condensed = 0, 0
	w.asks++
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) { return s.Answered(w.claim, answered) },
		func(s session.State) ([]session.Payload, error) {
			switch {
			case final && s.Pausing && s.LastSaid > asked.Ask.UpTo: // what waits is answered after the pause
				return nil, nil
			case final && llm.Asks(a.text):
				return s.EndTurn(w.claim, session.TurnEnded{UpTo: asked.Ask.UpTo, State: session.AgentAwaitingUser, Reason: session.ReasonQuestion})
			case final:
				return s.EndTurn(w.claim, session.TurnEnded{UpTo: asked.Ask.UpTo, State: session.AgentAwaitingUser})
			case len(a.calls) == 0:
				return []session.Payload{session.Nudged{Rule: ruleCut, Text: "Your answer reached the limit on its length and was cut. Go on where it ends, or say it more briefly."}}, nil
			}
			return nil, nil
		},
		l.calling(w, p),
	)
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// endTurn ends a turn that may not go on. What the model was not shown gets a
// turn of its own, unless it was there when this was tried.
func (l *Loop) endTurn(ctx context.Context, w *worker, t *transcript, id, reason string) (session.State, error) {
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		upTo := t.upTo
		if s.Asks > 0 {
			upTo = max(s.Shown, s.Seen)
		}
		return s.EndTurn(w.claim, session.TurnEnded{UpTo: upTo, State: session.AgentError, ErrorID: id, Reason: reason})
	})
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// errLeft says the session was stopped, paused or taken over during the call.
var errLeft = errors.New("the session was left during the call")

// ask makes the call. While it runs, news of the session are read: a stop
// aborts the call at the provider, it is not merely ignored.
func (l *Loop) ask(ctx context.Context, w *worker, p Profile, t *transcript, call string) (answer, error) {
	ctx, stop := l.while(ctx, w, func(st session.State) bool { return st.Ask != nil && st.Ask.Call == call })
	defer stop()
	l.picture(ctx, t)
	req := t.request(p, w.offer, w.answer)
	req.Calling = l.ahead(ctx, w)
	return l.hear(ctx, p.Model, req, l.live(w.id, call, p.Masker.Writer))
}

// hear listens to an answer until its end, and passes its text on as it comes.
func (l *Loop) hear(ctx context.Context, m llm.Model, req llm.Request, take func([]byte)) (answer, error) {
	var a answer
	var text, reasoning strings.Builder
	for part, err := range m.Stream(ctx, req) {
		if cause := context.Cause(ctx); cause != nil {
			return a, cause
		}
		switch {
		case err != nil:
			return a, err
		case part.Done != nil:
			a.text, a.reasoning, a.done = text.String(), reasoning.String(), part.Done
			if strings.TrimSpace(a.text) == "" && len(a.calls) == 0 && !a.done.Cut {
				return a, &llm.Error{Class: llm.ClassInternal, Message: "The model returned an empty reply.", Began: true}
			}
			return a, nil
		case part.Call != nil:
			a.calls = append(a.calls, session.ToolCall{ID: ownID(part.Call.ID, a.calls), Name: part.Call.Name, Args: part.Call.Args})
		case part.Reasoning != "":
			reasoning.WriteString(part.Reasoning)
		case part.Text != "":
			text.WriteString(part.Text)
			take([]byte(part.Text))
		}
	}
	return a, &llm.Error{Class: llm.ClassNetwork, Message: "The reply ended early.", Began: true}
}

// ownID is the id of a call, or another one if the model gave none or gave it to
// two calls of one answer: results could not be told apart.
func ownID(id string, before []session.ToolCall) string {
	taken := func(c session.ToolCall) bool { return c.ID == id }
	for n := len(before); id == "" || slices.ContainsFunc(before, taken); n++ {
		id = fmt.Sprintf("call-%d", n)
	}
	return id
}

// ahead returns what to do when the model begins to call a tool: if the tool needs the sandbox, that is started while the rest of
// the answer comes. Conversations that call no such tool have none. nil if there is nothing to start. What goes wrong shows when the call is run.
func (l *Loop) ahead(ctx context.Context, w *worker) func(tool string) {
	if l.Workspaces == nil || w.warming != nil {
		return nil
	}
	if st, ok := l.Sessions.Known(ctx, w.id); !ok || st.Up || st.Created.Parent != "" || st.Unprepared() {
		return nil
	}
	start := sync.OnceFunc(func() {
		w.tasks.Go(func() {
			if _, release, err := l.Workspaces.Use(w.during, w.id); err == nil {
				release()
			}
		})
	})
	return func(name string) {
		for _, t := range w.tools {
			if s := t.Spec(); s.Name == name && s.Sandbox {
				start()
			}
		}
	}
}
