package agent

import (
	"context"
	"errors"
	"fmt"

	"deckhand/internal/session"
)

// isAsking reports whether the model call in progress is this worker's own, and not one that an earlier owner left behind.
func (w *worker) isAsking(st session.State) bool {
	return st.Ask != nil && st.Ask.Call == w.asked && st.Claim == w.claim
}

// errGrew means that the history or the chosen model changed after it was read.
var errGrew = errors.New("the session grew")

// prepareCall records the start of a model call, or does what must come first, such as condensing the history.
func (l *Loop) prepareCall(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if st.InTurn && st.Asks >= p.MaxAsks {
		return l.endTurn(ctx, w, t, "STATUS$ERROR_MAX_ITERATIONS", fmt.Sprintf("The limit of %d model calls per turn was reached. Send a message to continue.", p.MaxAsks))
	}
	if why := t.repeats.Found(); st.InTurn && why != "" {
		return l.unstick(ctx, w, t, why)
	}
	if t.crowded(p, w.offered()) && w.condensed < maxCondensed {
		if !st.InTurn {
			return l.begin(ctx, w, p, t)
		}
		return l.condense(ctx, w, st, p, t)
	}
	if w.refresh(ctx, p) {
		t.since += int64(w.offered()) // the provider has not counted these yet
	}
	found := l.recall(ctx, w, st, t)
	more := recalledWeight(found)
	t.grow(more)
	full := len(found) > 0 && t.full(p, w.offered())
	t.grow(-more)
	if full { // the next step makes room
		return l.recallOnly(ctx, w, t, found)
	}
	begun := st.InTurn
	st, err := l.reserve(ctx, w, p, t, found)
	if err != nil {
		t.forget(found)
	}
	var over *session.BudgetError
	switch {
	case errors.Is(err, errGrew):
		return l.Sessions.Load(ctx, w.id)
	case errors.As(err, &over) && !begun: // a turn that ends for lack of money has begun
		return l.begin(ctx, w, p, t)
	case errors.As(err, &over):
		id, why := outOfMoney(over)
		return l.endTurn(ctx, w, t, id, why)
	case err != nil:
		return l.left(ctx, w, err)
	case len(found) > 0: // the call contains it
		err = t.advance(ctx, l.Log, st)
	}
	return st, err
}

// recallOnly records what was recalled, without a call.
func (l *Loop) recallOnly(ctx context.Context, w *worker, t *transcript, found []session.Payload) (session.State, error) {
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) { return s.BeginTurn(w.claim) }, recalling(found))
	if err != nil {
		t.forget(found)
		return l.left(ctx, w, err)
	}
	return st, nil
}

// reserve reserves the money for a call, and records what was recalled for it. It returns errGrew if the history or the
// chosen model has changed since it was read, so that the call includes every message.
func (l *Loop) reserve(ctx context.Context, w *worker, p Profile, t *transcript, found []session.Payload) (session.State, error) {
	return l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		if s.Claim == w.claim && (s.Last != t.upTo || s.Overrides != w.chosen.Own) {
			return nil, errGrew
		}
		return s.BeginTurn(w.claim)
	}, recalling(found), func(s session.State) ([]session.Payload, error) {
		more := recalledWeight(found)
		t.grow(more)
		defer t.grow(-more)
		return w.askModel(s, p, t)
	})
}

// askModel reserves the money for a call about the history in t.
func (w *worker) askModel(s session.State, p Profile, t *transcript) ([]session.Payload, error) {
	w.answer = answerLimit(p.Info)
	if limit, ok := s.Budget(p.Budget); ok {
		w.answer = t.affordable(p, w.offered(), limit-s.Committed())
	}
	w.asked = fmt.Sprintf("m%d", s.Last+1)
	return s.AskModel(w.claim, session.ModelAsked{Call: w.asked, Model: p.ModelName, Reserved: t.worstCase(p, w.offered(), w.answer)}, p.Budget)
}

// askingNext returns a rule that records the next model call in the same append as the last result that the model waits
// for. If something must be done in between, the rule does nothing: the next step does that and then calls the model.
func (l *Loop) askingNext(ctx context.Context, w *worker, p Profile, t *transcript, r session.ToolReturned) func(session.State) ([]session.Payload, error) {
	nothing := func(session.State) ([]session.Payload, error) { return nil, nil }
	now, known := l.Sessions.Known(ctx, w.id)
	if !known || len(now.Open) != 1 || len(now.Announced) > 0 || !l.Admission.Idle() || l.Busy != nil && l.Busy() {
		return nothing
	}
	if err := t.advance(ctx, l.Log, now); err != nil {
		return nothing // the next step gets the same error
	}
	if w.refresh(ctx, p) {
		t.since += int64(w.offered())
	}
	result := weight(t.result(now.Last+1, r))
	t.grow(result)
	busy := len(t.held) > 0 || t.repeats.After(r) != "" || p.MaxMessages > 0 && len(t.messages) >= p.MaxMessages || t.full(p, w.offered())
	t.grow(-result)
	if busy {
		return nothing
	}
	return func(s session.State) ([]session.Payload, error) {
		free := s.InTurn && s.Over == "" && len(s.Open) == 0 && len(s.Announced) == 0 && !s.Paused && !s.Pausing && s.Compact == nil && len(s.Grants) == 0
		if !free || s.Replaying() || s.Asks >= p.MaxAsks || s.Last != t.upTo+1 || s.Overrides != w.chosen.Own {
			return nil, nil
		}
		t.grow(result)
		defer t.grow(-result)
		out, err := w.askModel(s, p, t)
		if err != nil {
			return nil, nil // the next step reports the error
		}
		return out, nil
	}
}
