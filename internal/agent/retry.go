package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// Retry is how a failed model call is tried again.
type Retry = llm.Backoff

// failure is what went wrong with a model call.
func failure(cause error) *llm.Error {
	var e *llm.Error
	if errors.As(cause, &e) {
		own := *e
		return &own
	}
	return &llm.Error{Class: llm.ClassInternal, Message: cause.Error(), Began: true}
}

// spent is what a failed call must be taken to have cost: all that was reserved,
// unless the provider refused it before it said anything.
func spent(e *llm.Error, reserved session.Money) session.Money {
	if e.Began || e.Class == llm.ClassNetwork && !e.Unsent {
		return reserved
	}
	return 0
}

// askFailed settles a call the model did not answer, and tries again or ends
// the turn with the reason. Messages that came in during the call are not part
// of it: they are answered next.
func (l *Loop) askFailed(ctx context.Context, w *worker, p Profile, t *transcript, asked session.State, cause error) (session.State, error) {
	e := failure(cause)
	e.Message = p.mask(e.Message)
	l.Logger.Warn("a model call failed", "session", w.id, "user", w.owner, "model", p.ModelName, "class", string(e.Class), "attempt", w.retries+1, "error", e.Message)
	t.settle() // the call is over, and its record may have been read already
	spare := p.Fallback != nil && !w.fellBack && slices.Contains(replaceable, e.Class)
	again := e.Retry() && w.retries+1 < l.Retry.Attempts && (!spare || e.Class == llm.ClassNetwork)
	shorten := e.Class == llm.ClassContext && w.condensed < maxCondensed && (t.canCondense() || t.canCut())
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) {
			return s.AskFailed(w.claim, asked.Ask.Call, string(e.Class), e.Message, spent(e, s.Reserved), again || shorten || spare)
		},
		func(s session.State) ([]session.Payload, error) {
			if spare && !again {
				return []session.Payload{session.Noted{ID: "STATUS$LLM_FALLBACK", Message: fmt.Sprintf("%s failed (%s). %s continues this turn.", p.ModelName, e.Message, p.Fallback.Name)}}, nil
			}
			if again || shorten {
				return nil, nil
			}
			return s.EndTurn(w.claim, session.TurnEnded{UpTo: asked.Ask.UpTo, State: endState(e.Class), ErrorID: ErrorID(e.Class), Reason: explain(e)})
		},
	)
	switch {
	case err != nil:
		return l.left(ctx, w, err)
	case shorten:
		return l.condense(ctx, w, st, p, t)
	case again:
		w.retries++
		return l.pause(ctx, w, e)
	}
	w.retries, w.fellBack = 0, w.fellBack || spare
	return st, nil
}

// replaceable are the failures that another model need not have: of the key, the account, the limits, the service.
var replaceable = []llm.Class{llm.ClassAuth, llm.ClassCredit, llm.ClassRate, llm.ClassOverload, llm.ClassInternal, llm.ClassNetwork}

// pause says that the call is tried again, and waits until it is time: for the
// wait to end, or for a person to say something or choose another model.
func (l *Loop) pause(ctx context.Context, w *worker, e *llm.Error) (session.State, error) {
	d := l.Retry.Wait(w.retries, e.RetryAfter)
	note := session.Noted{ID: "STATUS$LLM_RETRY", Message: fmt.Sprintf("Retrying LLM request, %d / %d, in %s: %s", w.retries, l.Retry.Attempts-1, d.Round(time.Second/10), e.Message),
		Retry: w.retries, Retries: l.Retry.Attempts - 1, RetryAt: time.Now().Add(d).UTC().Truncate(time.Millisecond)}
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) {
			if s.Claim != w.claim {
				return nil, session.ErrNotOwner
			}
			return []session.Payload{note}, nil
		},
		func(s session.State) ([]session.Payload, error) {
			if e.Class != llm.ClassRate || !s.InTurn || s.Paused {
				return nil, nil
			}
			return []session.Payload{session.StateChanged{State: session.AgentRateLimited, Reason: e.Message}}, nil
		})
	if err != nil {
		return l.left(ctx, w, err)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	said := st.LastSaid
	for {
		select {
		case <-ctx.Done():
			return st, ctx.Err()
		case <-timer.C:
			return l.Sessions.Load(ctx, w.id)
		case <-w.news:
		}
		if st, err = l.Sessions.Load(ctx, w.id); err != nil || st.Claim != w.claim || !st.InTurn || st.Paused || st.Pausing || st.LastSaid != said || st.Overrides != w.chosen.Own {
			return st, err
		}
	}
}

// endState is what the agent is when it gave up.
func endState(c llm.Class) session.AgentState {
	if c == llm.ClassRate {
		return session.AgentRateLimited
	}
	return session.AgentError
}

// ErrorID is the code that clients translate.
func ErrorID(c llm.Class) string {
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
	case llm.ClassContext:
		return "STATUS$ERROR_LLM_CONTEXT_WINDOW"
	}
	return "STATUS$ERROR"
}

// explain tells a person what went wrong, in the provider's words too, and what
// they can do about it.
func explain(e *llm.Error) string {
	what, then := "The provider rejected the request", "Check the model name and the base URL."
	switch e.Class {
	case llm.ClassAuth:
		what, then = "The provider rejected the API key", "Store another key, then send a message to continue."
	case llm.ClassRate:
		what, then = "Rate limited by the provider", "Send a message to try again."
	case llm.ClassOverload, llm.ClassInternal:
		what, then = "The provider failed", "Send a message to try again."
	case llm.ClassNetwork:
		what, then = "The connection to the model failed", "Check the base URL, or send a message to try again."
	case llm.ClassContext:
		what, then = "The conversation does not fit into the model's context window", "Choose a model with a larger context window, or start a new conversation."
	case llm.ClassPolicy:
		what, then = "The provider refused this content", "Send another message to continue."
	case llm.ClassCredit:
		what, then = "The provider account has no credit left", "Add credit or store another key, then send a message to continue."
	}
	return what + ": " + strings.TrimRight(e.Message, ". \n") + ". " + then
}
