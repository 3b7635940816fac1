package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// step makes one model call and records how it ended.
func (l *Loop) step(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if st.Asks >= p.MaxAsks {
		return l.endTurn(ctx, w, "STATUS$ERROR", fmt.Sprintf("The limit of %d model calls per turn was reached. Send a message to go on.", p.MaxAsks))
	}
	call := fmt.Sprintf("m%d", st.Last+1)
	reserve := worstCase(p, t)
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		return s.AskModel(w.claim, call, p.ModelName, reserve, p.Budget, p.Limited)
	})
	var over *session.BudgetError
	switch {
	case errors.As(err, &over):
		return l.endTurn(ctx, w, "STATUS$ERROR_BUDGET", over.Error()+". Raise max_budget_per_task and send a message to go on.")
	case errors.Is(err, session.ErrRefused): // stopped or paused just now
		return l.Sessions.Load(ctx, w.id)
	case err != nil:
		return st, err
	}
	if err := t.advance(ctx, l.Log, st.Ask.UpTo); err != nil {
		return st, err
	}
	text, done, err := l.ask(ctx, w, p, t, call)
	defer l.Deltas.EndDelta(w.id, call)
	switch {
	case err != nil && ctx.Err() != nil: // shutdown: the next owner makes the call again
		return st, err
	case errors.Is(err, errLeft):
		return l.Sessions.Load(ctx, w.id)
	case err != nil:
		return l.askFailed(ctx, w, call, err)
	}
	return l.record(ctx, w, p, t, st, text, done)
}

// record settles the call, ends the turn and names the conversation, in one append.
func (l *Loop) record(ctx context.Context, w *worker, p Profile, t *transcript, asked session.State, text string, done *llm.Done) (session.State, error) {
	u := done.Usage
	answer := session.ModelAnswered{Call: asked.Ask.Call, Text: text, Final: true, Raw: done.Raw, Cost: cost(p.Price, u.Input, u.Output),
		Usage: session.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Window: u.Window}}
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) { return s.Answered(w.claim, answer) },
		func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(w.claim, session.TurnEnded{UpTo: asked.Ask.UpTo, State: session.AgentAwaitingUser})
		},
		func(s session.State) ([]session.Payload, error) {
			if s.Title != session.DefaultTitle(s.ID) {
				return nil, nil
			}
			return s.Suggest(w.claim, TitleFrom(t.firstSaid()))
		},
	)
	if errors.Is(err, session.ErrRefused) {
		return l.Sessions.Load(ctx, w.id)
	}
	return st, err
}

// askFailed settles a call the model did not answer and ends the turn with the reason.
func (l *Loop) askFailed(ctx context.Context, w *worker, call string, cause error) (session.State, error) {
	class, message := llm.ClassInternal, cause.Error()
	var e *llm.Error
	if errors.As(cause, &e) {
		class, message = e.Class, e.Message
	}
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) {
			return s.AskFailed(w.claim, call, string(class), message, s.Reserved)
		},
		func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(w.claim, session.TurnEnded{UpTo: s.Last, State: session.AgentError, ErrorID: errorID(class), Reason: message})
		},
	)
	if errors.Is(err, session.ErrRefused) {
		return l.Sessions.Load(ctx, w.id)
	}
	return st, err
}

func (l *Loop) endTurn(ctx context.Context, w *worker, id, reason string) (session.State, error) {
	return l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		return s.EndTurn(w.claim, session.TurnEnded{UpTo: s.Last, State: session.AgentError, ErrorID: id, Reason: reason})
	})
}

// errLeft says the session was stopped, paused or taken over during the call.
var errLeft = errors.New("the session was left during the call")

// ask makes the call. While it runs, news of the session are read: a stop
// aborts the call at the provider, it is not merely ignored.
func (l *Loop) ask(ctx context.Context, w *worker, p Profile, t *transcript, call string) (string, *llm.Done, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.news:
				st, err := l.Sessions.Load(ctx, w.id)
				if err != nil || st.Claim != w.claim || st.Ask == nil || st.Ask.Call != call {
					cancel(errLeft)
					return
				}
			}
		}
	}()
	defer func() { cancel(nil); <-stopped }()

	var text strings.Builder
	for part, err := range p.Model.Stream(ctx, t.request(p)) {
		if cause := context.Cause(ctx); cause != nil {
			return "", nil, cause
		}
		switch {
		case err != nil:
			return "", nil, err
		case part.Done != nil:
			return text.String(), part.Done, nil
		case part.Text != "":
			text.WriteString(part.Text)
			l.Deltas.Delta(w.id, call, part.Text)
		}
	}
	return "", nil, &llm.Error{Class: llm.ClassNetwork, Message: "the answer ended before it was complete"}
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

// maxAnswer is how many tokens an answer is taken to have at most.
const maxAnswer = 8192

// worstCase is the money to reserve: all that is shown, and the longest answer.
func worstCase(p Profile, t *transcript) session.Money {
	return cost(p.Price, int64(t.size/3+len(p.System)/3+1000), maxAnswer)
}

func cost(p llm.Price, input, output int64) session.Money {
	// dollars per million tokens × tokens = thousandths of billionths … in integers of 1e-9 dollars
	return session.Money(p.Input*float64(input)*1e3 + p.Output*float64(output)*1e3)
}
