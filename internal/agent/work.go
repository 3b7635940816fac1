package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/agent/backlog"
	"deckhand/internal/conversation"
	"deckhand/internal/llm"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// worker is the goroutine that works on one session.
type worker struct {
	id    session.ID
	owner string
	claim int64
	// last is the newest event the worker knows, so that its own appends do not disturb it.
	last atomic.Int64
	// news is set when another writer appended to the session.
	news chan struct{}
	// dirty is set with news and read when the worker is about to end.
	dirty atomic.Bool
	// holder is the live member that has the session, if it could not be claimed.
	holder string
	// placed is true while the session has a slot, queued when the worker ends because the session waits for one.
	placed, queued bool
	// box is the sandbox that the last call used, called the number of the call
	// that this worker recorded last, marked the message before whose turn files were recorded.
	box    *sandbox.Sandbox
	called int64
	marked atomic.Int64
	call   session.ToolCalled
	// fresh is the number of an approved call that has not been started.
	fresh int64
	// begun is the claim before ours: commands that people typed after it are not
	// begun yet.
	begun int64
	// tools are what the model may call, offer how they are described to it.
	tools []tool.Tool
	offer []llm.Tool
	// said is the history that the model sees.
	said *transcript
	// chosen is what the person had chosen when the profile was read.
	chosen conversation.Chosen
	// asked is the model call that this worker recorded last, and answer how many tokens its answer may have.
	asked  string
	answer int64
	// retries counts how often the present model call failed, condensed how often
	// the history was shortened since the model last answered.
	retries   int
	condensed int
	fellBack  bool // the fallback model has taken over for the rest of the turn
	script    []Recorded
	// asks and calls count what was done, for tally.
	asks  int
	calls map[string]int
	// tasks are what goes on beside the work; done waits for them.
	tasks sync.WaitGroup
	// during lasts as long as the work.
	during context.Context
	// warming is closed when the sandbox that was started ahead of need is there,
	// or cannot be had; nil if none was.
	warming chan struct{}
	// unstarted is why that sandbox cannot be had, set before warming is closed.
	unstarted atomic.Pointer[sandbox.Unavailable]
}

// grew is called for every append to the session, with the loop's mu held.
func (w *worker) grew(last int64) {
	if last <= w.last.Load() {
		return
	}
	w.dirty.Store(true)
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// appendTimeout bounds one append; the store answers in milliseconds or not at all.
const appendTimeout = 30 * time.Second

// update applies rules for this worker. The append itself is not cancelled by
// a shutdown, so that it is known how it ended.
func (l *Loop) update(ctx context.Context, w *worker, rules ...func(session.State) ([]session.Payload, error)) (session.State, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
	defer cancel()
	decide := session.Chain(rules...)
	known, seen := w.last.Load(), int64(0)
	st, err := l.Sessions.Update(ctx, w.id, func(s session.State) ([]session.Payload, error) {
		payloads, err := decide(s)
		seen = s.Last
		// The observer is told before Update returns; these are ours.
		w.last.Store(s.Last + int64(len(payloads)))
		return payloads, err
	})
	if errors.Is(err, session.ErrRefused) && seen > known { // by a writer that does not notify this loop
		w.dirty.Store(true)
	}
	return st, err
}

// take claims a session and, if there is something to do, gives it a goroutine.
func (l *Loop) take(ctx context.Context, e backlog.Entry) {
	if st, ok := l.Sessions.Peek(e.ID); ok && e.Last > 0 && st.Last >= e.Last && !st.Wants() {
		l.Admission.Leave(e.ID)
		return // the usual case: it was renamed, stopped, …
	}
	w := &worker{id: e.ID, owner: e.Owner, news: make(chan struct{}, 1)}
	l.mu.Lock()
	if now := l.working[w.id]; now != nil || l.closed {
		if now != nil && e.Last == 0 { // it may have a slot that the worker does not know of
			now.dirty.Store(true)
		}
		l.mu.Unlock()
		return
	}
	l.working[w.id] = w
	l.workers.Add(1)
	l.mu.Unlock()

	st, profile, err := l.open(ctx, w, e.Last)
	if err != nil || w.queued || !st.Wants() {
		l.done(ctx, w, err)
		return
	}
	go func() {
		defer func() {
			if r := recover(); r != nil {
				l.done(ctx, w, fmt.Errorf("the loop panicked: %v", r))
			}
		}()
		err := l.work(ctx, w, st, profile)
		l.tally(ctx, w, st, profile)
		l.done(ctx, w, err)
	}()
}

// tally reports what was done to the usage counters.
func (l *Loop) tally(ctx context.Context, w *worker, began session.State, p Profile) {
	if l.Worked == nil || w.asks == 0 && len(w.calls) == 0 {
		return
	}
	st, known := l.Sessions.Peek(w.id)
	if !known {
		var err error
		if st, err = l.Sessions.Load(context.WithoutCancel(ctx), w.id); err != nil {
			return
		}
	}
	l.Worked(st.Owner, Work{Model: p.ModelName, Asks: w.asks, Calls: w.calls, State: st.Agent,
		Input: st.Totals.Input - began.Totals.Input, Output: st.Totals.Output - began.Totals.Output})
}

// done ends a worker. If new events arrived, another worker is started.
func (l *Loop) done(ctx context.Context, w *worker, err error) {
	w.tasks.Wait()
	switch {
	case errors.Is(err, session.ErrRefused): // another server may work on it
		l.Admission.HandOver(w.id, w.owner)
	case !w.queued:
		l.Admission.Leave(w.id)
	}
	l.mu.Lock()
	delete(l.working, w.id)
	if err == nil {
		delete(l.failures, w.id)
	}
	if w.dirty.Load() {
		l.enqueue(backlog.Entry{ID: w.id, Owner: w.owner, Last: w.last.Load(), Urgent: true})
	}
	l.mu.Unlock()
	l.workers.Done()
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.Is(err, session.ErrHeld):
		l.retryReleased(ctx, w)
	case errors.Is(err, session.ErrNotOwner), errors.Is(err, session.ErrDeleted), errors.Is(err, session.ErrRefused),
		errors.Is(err, session.ErrNotFound):
		l.Logger.Debug("released a conversation", "session", w.id, "why", err)
	default:
		l.Logger.Error("released a conversation after an error", "session", w.id, "error", err)
		l.retry(w)
	}
}

// maxWait is how many times the wait between two attempts doubles: to four minutes.
const maxWait = 8

// retry queues the session again after an unexpected error (a full disk, say), with growing
// delays, so that the session does not stay stuck.
func (l *Loop) retry(w *worker) {
	e := backlog.Entry{ID: w.id, Owner: w.owner}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failures) >= maxQueue || l.closed {
		return
	}
	n := min(l.failures[e.ID], maxWait)
	l.failures[e.ID] = n + 1
	time.AfterFunc(time.Second<<n, func() { l.enqueueIdle(e) })
}

// open claims the session and says that its workspace is ready, in one append
// with the start of the turn if messages wait. A session that it finds claimed
// and ready is left as it is. last is the newest event that the loop knows of.
func (l *Loop) open(ctx context.Context, w *worker, last int64) (session.State, Profile, error) {
	st, ok := l.Sessions.Peek(w.id)
	if !ok || st.Last < last || !st.Wants() || st.Holder() != "" && st.Holder() != l.Member {
		var err error
		if st, err = l.Sessions.Load(ctx, w.id); err != nil || !st.Wants() {
			return st, Profile{}, err
		}
	}
	if st.Holder() != l.Member { // this is enough to see that another server has it or should have it
		if _, err := l.takes(ctx, w, st); err != nil {
			return st, Profile{}, err
		}
	}
	if !l.admitted(ctx, w, st, false) {
		return st, Profile{}, nil
	}
	w.chosen, _ = conversation.ChosenFor(ctx, l.Sessions, st) // Profile fails for the same reason
	profile, err := l.Profile(ctx, st)
	if err == nil && l.orphaned(ctx, st) {
		err = &ProfileError{ID: "STATUS$ERROR", Reason: "The conversation that delegated this task is stopped, and its workspace with it."}
	}
	if err != nil {
		st, err = l.fail(ctx, w, err)
		return st, profile, err
	}
	var found int64
	rules := []func(session.State) ([]session.Payload, error){
		func(s session.State) ([]session.Payload, error) { found = s.Last; return nil, nil }, l.claim(ctx, w),
		func(s session.State) ([]session.Payload, error) {
			if l.warms(s, profile) {
				return nil, nil // it is ready when its sandbox is
			}
			return s.Prepared(s.Claim, session.WorkspaceReady{})
		},
		func(s session.State) ([]session.Payload, error) { return l.brief(s, profile), nil },
		func(s session.State) ([]session.Payload, error) {
			if s.Last == found || !w.placed { // the first step does it, in one append with its call
				return nil, nil
			}
			return s.BeginTurn(s.Claim)
		},
	}
	// Usually nothing is to be recorded. If the session has changed since, the first append finds out.
	if payloads, err := session.Chain(rules...)(st); err != nil || len(payloads) > 0 {
		if st, err = l.update(ctx, w, rules...); err != nil {
			w.claim = st.Claim
			return st, profile, err
		}
	}
	w.last.Store(st.Last)
	w.claim = st.Claim
	return st, profile, nil
}

// claim takes the session unless this loop holds it already, or another live member does. An open call
// without a worker in this process was left behind by an error: taking the session again settles it.
//
// A call that a person approved is begun only by who took the session after the
// approval. So a new owner can tell a call that waited for its approval from one
// that may have been begun.
func (l *Loop) claim(ctx context.Context, w *worker) func(session.State) ([]session.Payload, error) {
	return func(s session.State) ([]session.Payload, error) {
		w.fresh, w.begun = 0, s.Claim
		for _, c := range s.Open {
			if c.Approved && s.Claim < c.Since {
				w.fresh = c.Number
			}
		}
		if s.Claim > 0 && s.ClaimedBy == l.Member && s.Ask == nil && w.fresh == 0 && !newlyTyped(s) {
			return nil, nil
		}
		return l.takes(ctx, w, s)
	}
}

// reclaim is claim for a worker that holds the session.
func (l *Loop) reclaim(ctx context.Context, w *worker) (session.State, error) {
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		if s.Claim != w.claim {
			return nil, session.ErrNotOwner
		}
		return l.claim(ctx, w)(s)
	})
	w.claim = st.Claim
	return st, err
}

// brief records the system prompt once, before the first turn.
func (l *Loop) brief(s session.State, p Profile) []session.Payload {
	if s.Briefing || !s.Pending() && !s.Replaying() {
		return nil
	}
	return []session.Payload{session.Briefed{Prompt: system(p, s.Created.Instructions), Tools: l.wired.of(p.Tools), Agent: p.Agent, Model: p.ModelName}}
}

// fail records that the session cannot be started, so that it does not look as if it still were.
func (l *Loop) fail(ctx context.Context, w *worker, cause error) (session.State, error) {
	if ctx.Err() != nil {
		return session.State{}, cause
	}
	why := &ProfileError{ID: "STATUS$ERROR", Reason: "The conversation could not be started; see the server log."}
	if !errors.As(cause, &why) {
		l.Logger.Error("cannot start a conversation", "session", w.id, "error", cause)
	}
	return l.update(ctx, w, l.claim(ctx, w),
		func(s session.State) ([]session.Payload, error) { return s.Fail(s.Claim, why.ID, why.Reason) })
}

// work takes steps until nothing is left to do.
func (l *Loop) work(ctx context.Context, w *worker, st session.State, p Profile) error {
	t, ok := l.transcripts.Take(w.id)
	if !ok {
		t = newTranscript(w.id)
	}
	err := t.advance(ctx, l.Log, st)
	if err != nil {
		return err
	}
	var end func()
	w.said = t
	w.during, end = context.WithCancel(ctx)
	defer end()
	if l.warms(st, p) {
		defer l.warm(ctx, w)()
	}
	w.refresh(ctx, p)
	// For the next turn, what the settings say then holds; what the person chose for
	// this conversation holds from the next call on.
	renew := false
	for {
		if !st.Wants() {
			if st, err = l.entitle(ctx, w, st, p, t); err != nil || !st.Wants() {
				break
			}
		}
		l.giveWay(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		if st.Claim != w.claim { // another loop's by now, or stopped and started: then it is taken anew
			return session.ErrNotOwner
		}
		if !l.admitted(ctx, w, st, renew) {
			break
		}
		chosen, gone := conversation.ChosenFor(ctx, l.Sessions, st)
		if renew || gone != nil || chosen != w.chosen {
			if p, err = l.Profile(ctx, st); err != nil {
				_, err = l.fail(ctx, w, err)
				return err
			}
			w.chosen, w.retries, w.fellBack = chosen, 0, false
			if w.refresh(ctx, p) { // the rest of an answer gets no tool that plan mode takes away
				t.since += int64(w.offered())
			}
		}
		if why := w.unstarted.Load(); why != nil && !st.Up && !underway(st) {
			_, err = l.unavailable(ctx, w, why, session.ToolReturned{})
			return err
		}
		before, turning, warming := st.Last, st.InTurn, w.warming != nil
		now := p
		if w.fellBack {
			now = p.with(p.Fallback)
		}
		if st, err = l.advance(ctx, w, st, now, t); err != nil {
			return err
		}
		renew = turning && !st.InTurn && st.Pending()
		w.fellBack = w.fellBack && st.InTurn
		// That the sandbox has started is progress, too, though it may be in the log already.
		if st.Last == before && st.Wants() && !warming && !waits(st) {
			return fmt.Errorf("the loop does not know how to go on after event %d", st.Last)
		}
	}
	l.transcripts.Put(t.id, t, t.weight())
	return err
}

// waits is true for a session that nothing can be done about but to wait.
func waits(st session.State) bool {
	_, asked := st.Awaiting()
	return asked || st.Paused
}

// advance does the next thing that is to be done.
func (l *Loop) advance(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if st.Typing() {
		return l.runTyped(ctx, w, p, st)
	}
	if _, asked := st.Awaiting(); asked {
		return l.awaitAnswer(ctx, w, st)
	}
	switch {
	case st.Pausing && len(st.Open) == 0 && st.Over == "":
		return l.update(ctx, w, func(s session.State) ([]session.Payload, error) { return s.PauseDue(w.claim) })
	case st.Paused: // there is a worker only because the sandbox is being started
		return l.awaitWarm(ctx, w)
	case st.Unprepared() && w.warming != nil: // the model is told about the repository
		return l.awaitWarm(ctx, w)
	case st.Checkout != nil && st.Unprepared() && l.Workspaces != nil:
		return l.prepare(ctx, w)
	case len(st.Grants) > 0 && len(st.Open) == 0:
		return l.settleGrants(ctx, w, st)
	case st.InTurn && len(st.Open) > 0 && st.Open[0].Approved && st.Claim < st.Open[0].Since:
		return l.reclaim(ctx, w)
	case st.InTurn && len(st.Open) > 0:
		return l.finishCall(ctx, w, p, st, t)
	case st.InTurn && st.Over != "":
		return l.endOver(ctx, w)
	case st.InTurn && len(st.Announced) > 0:
		return l.callNext(ctx, w, st, p)
	case st.Compact != nil:
		return l.compact(ctx, w, st, p, t)
	case st.Replaying():
		return l.replay(ctx, w, st, p, t)
	case st.InTurn, st.Ready && (st.Pending() || st.Again):
		return l.step(ctx, w, st, p, t)
	case !st.Pending() && !st.Ready && w.warming != nil:
		return l.awaitWarm(ctx, w)
	}
	return l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) { return s.BeginTurn(w.claim) },
		func(s session.State) ([]session.Payload, error) {
			if s.InTurn || s.Ready || w.warming != nil {
				return nil, nil
			}
			return s.Prepared(w.claim, session.WorkspaceReady{})
		})
}
