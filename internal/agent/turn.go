package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// step makes one model call and records how it ended.
func (l *Loop) step(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if st.Asks >= p.MaxAsks {
		return l.endTurn(ctx, w, "STATUS$ERROR_MAX_ITERATIONS", fmt.Sprintf("The limit of %d model calls per turn was reached. Send a message to go on.", p.MaxAsks))
	}
	st, err := l.reserve(ctx, w, p, t)
	var over *session.BudgetError
	switch {
	case errors.As(err, &over):
		return l.endTurn(ctx, w, "STATUS$ERROR_BUDGET", over.Error()+". Raise max_budget_per_task and send a message to go on.")
	case err != nil:
		return l.left(ctx, w, err)
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
		return l.askFailed(ctx, w, st, err)
	}
	return l.record(ctx, w, p, t, st, answer)
}

// errGrew says that something was said between reading the history and asking about it.
var errGrew = errors.New("the session grew")

// reserve takes in what is new, and reserves the money for a call about
// exactly that: what was not read is neither paid for nor answered.
func (l *Loop) reserve(ctx context.Context, w *worker, p Profile, t *transcript) (session.State, error) {
	for {
		if err := t.advance(ctx, l.Log); err != nil {
			return session.State{}, err
		}
		st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
			if s.Claim == w.claim && s.Last != t.upTo {
				return nil, errGrew
			}
			return s.AskModel(w.claim, fmt.Sprintf("m%d", s.Last+1), p.ModelName, worstCase(p, t), p.Budget, p.Limited)
		})
		if !errors.Is(err, errGrew) {
			return st, err
		}
		if err := ctx.Err(); err != nil {
			return st, err
		}
	}
}

// left is what to do when a rule said no: a person stopped or paused the
// session, and its state tells how to go on. If it tells that nothing happened,
// the no is a mistake of ours, and trying again would be one too.
func (l *Loop) left(ctx context.Context, w *worker, why error) (session.State, error) {
	if !errors.Is(why, session.ErrRefused) && !errors.Is(why, errLeft) {
		return session.State{}, why
	}
	st, err := l.Sessions.Load(ctx, w.id)
	if err == nil && st.Wants() && st.InTurn && st.Claim == w.claim {
		// Not wrapped: whoever looks for a refusal would take it for a person's wish.
		err = fmt.Errorf("the loop does not know how to go on after event %d: %v", st.Last, why)
	}
	return st, err
}

// answer is all that the model said in one call.
type answer struct {
	text  string
	calls []session.ToolCall
	done  *llm.Done
}

// record settles the call and names the conversation, in one append; an answer
// that calls no tool also ends the turn.
func (l *Loop) record(ctx context.Context, w *worker, p Profile, t *transcript, asked session.State, a answer) (session.State, error) {
	u := a.done.Usage
	answered := session.ModelAnswered{Call: asked.Ask.Call, Text: a.text, ToolCalls: a.calls, Final: len(a.calls) == 0, Raw: a.done.Raw,
		Cost:  cost(p.Price, u.Input, u.Output),
		Usage: session.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Window: u.Window}}
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) { return s.Answered(w.claim, answered) },
		func(s session.State) ([]session.Payload, error) {
			if !answered.Final {
				return nil, nil
			}
			return s.EndTurn(w.claim, session.TurnEnded{UpTo: asked.Ask.UpTo, State: session.AgentAwaitingUser})
		},
		func(s session.State) ([]session.Payload, error) {
			if s.Title != session.DefaultTitle(s.ID) {
				return nil, nil
			}
			return s.Suggest(w.claim, TitleFrom(t.firstSaid()))
		},
	)
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// askFailed settles a call the model did not answer and ends the turn with the reason.
// Messages that came in during the call are not part of it: they are answered next.
func (l *Loop) askFailed(ctx context.Context, w *worker, asked session.State, cause error) (session.State, error) {
	class, message := llm.ClassInternal, cause.Error()
	var e *llm.Error
	if errors.As(cause, &e) {
		class, message = e.Class, e.Message
	}
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) {
			return s.AskFailed(w.claim, asked.Ask.Call, string(class), message, s.Reserved)
		},
		func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(w.claim, session.TurnEnded{UpTo: asked.Ask.UpTo, State: session.AgentError, ErrorID: errorID(class), Reason: message})
		},
	)
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// endTurn ends a turn that may not go on. What the model was not shown gets a
// turn of its own, unless this was that turn.
func (l *Loop) endTurn(ctx context.Context, w *worker, id, reason string) (session.State, error) {
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		upTo := s.Last
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
	var a answer
	var text strings.Builder
	for part, err := range p.Model.Stream(ctx, t.request(p)) {
		if cause := context.Cause(ctx); cause != nil {
			return a, cause
		}
		switch {
		case err != nil:
			return a, err
		case part.Done != nil:
			a.text, a.done = text.String(), part.Done
			return a, nil
		case part.Call != nil:
			a.calls = append(a.calls, session.ToolCall{ID: part.Call.ID, Name: part.Call.Name, Args: part.Call.Args})
		case part.Text != "":
			text.WriteString(part.Text)
			l.Deltas.Delta(w.id, call, part.Text)
		}
	}
	return a, &llm.Error{Class: llm.ClassNetwork, Message: "the answer ended before it was complete"}
}

// errorID is the code that clients translate.
func errorID(c llm.Class) string {
	switch c {
	case llm.ClassAuth:
		return "STATUS$ERROR_LLM_AUTHENTICATION"
	case llm.ClassOverload, llm.ClassNetwork:
		return "STATUS$ERROR_LLM_SERVICE_UNAVAILABLE"
	case llm.ClassInternal:
		return "STATUS$ERROR_LLM_INTERNAL_SERVER_ERROR"
	case llm.ClassCredit:
		return "STATUS$ERROR_LLM_OUT_OF_CREDITS"
	case llm.ClassPolicy:
		return "STATUS$ERROR_LLM_CONTENT_POLICY_VIOLATION"
	case llm.ClassRate:
		return "CHAT_INTERFACE$AGENT_RATE_LIMITED_STOPPED_MESSAGE"
	}
	return "STATUS$ERROR"
}

// maxAnswer is how many tokens an answer may have.
const maxAnswer = 8192

// worstCase is the money to reserve: a token for every byte that is shown, since
// no tokenizer makes more of them, and the longest answer.
func worstCase(p Profile, t *transcript) session.Money {
	return cost(p.Price, int64(t.size+len(p.System)+len(t.extra)+1000), maxAnswer)
}

// cost is exact to a billionth of a dollar: prices are per million tokens.
func cost(p llm.Price, input, output int64) session.Money {
	return session.Money(math.Ceil(p.Input*float64(input)*1e3 + p.Output*float64(output)*1e3))
}
