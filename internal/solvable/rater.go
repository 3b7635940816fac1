package solvable

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/idempotency"
)

// Rating is how likely an agent solves an issue, from 0 to 1, and why.
type Rating struct {
	Score    float64
	Sentence string
}

// Issue is an issue to rate.
type Issue struct {
	Provider, Repository string
	Number               int
	// Read fetches what it says. It is called when that may have changed.
	Read func(ctx context.Context) (gitprovider.Issue, error)
}

// Ask puts a question to a user's model.
type Ask func(ctx context.Context, user, system, question string) (string, error)

const (
	patience  = 3 * time.Second  // that a caller has
	jobTime   = 45 * time.Second // for one issue
	fresh     = time.Hour        // a rating is used without looking at the issue again
	pause     = 5 * time.Minute  // before what failed is tried again
	perCall   = 8                // issues that one call has rated
	atOnce    = 4                // questions under way, of all users
	maxKept   = 5000             // ratings
	maxAnswer = 300              // characters of a sentence
)

// Rater rates issues. Its methods may be called at the same time.
type Rater struct {
	ask    Ask
	logger *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	jobs   sync.WaitGroup
	slots  chan struct{}

	mu     sync.Mutex
	closed bool
	known  map[key]*entry
}

type key struct {
	user, provider, repository string
	number                     int
}

// entry is what is known of an issue.
type entry struct {
	rating *Rating       // nil if it could not be rated
	sum    string        // of what the issue said
	until  time.Time     // then it is looked at again
	busy   chan struct{} // closed when the job ends; nil if there is none
}

// New makes a Rater. Close it.
func New(ask Ask, logger *slog.Logger) *Rater {
	r := &Rater{ask: ask, logger: logger, slots: make(chan struct{}, atOnce), known: map[key]*entry{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close ends what is under way and waits for it. It may be called twice.
func (r *Rater) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.jobs.Wait()
}

// Rate returns a rating for each issue, nil where there is none (yet). It waits
// a few seconds for those that it has to ask for. The rest of them go on, for
// the next call to find.
func (r *Rater) Rate(ctx context.Context, user string, issues []Issue) []*Rating {
	var waiting []<-chan struct{}
	begun := 0
	for _, is := range issues {
		busy, started := r.look(user, is, begun < perCall)
		if started {
			begun++
		}
		if busy != nil {
			waiting = append(waiting, busy)
		}
	}
	r.wait(ctx, waiting)
	out := make([]*Rating, len(issues))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, is := range issues {
		if e := r.known[is.key(user)]; e != nil {
			out[i] = e.rating
		}
	}
	return out
}

func (is Issue) key(user string) key {
	return key{user, is.Provider, is.Repository, is.Number}
}

// look finds out whether a rating is in progress, and starts one if may allows it. A caller that
// has an old rating does not wait.
func (r *Rater) look(user string, is Issue, may bool) (busy <-chan struct{}, started bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.known[is.key(user)]
	if e != nil && e.busy == nil && time.Now().Before(e.until) || r.closed {
		return nil, false
	}
	if e == nil || e.busy == nil {
		if !may {
			return nil, false
		}
		e = r.begin(user, is, e)
		started = true
	}
	if e.rating != nil {
		return nil, started
	}
	return e.busy, started
}

// begin starts a job; the lock is held.
func (r *Rater) begin(user string, is Issue, e *entry) *entry {
	if e == nil {
		r.room()
		e = &entry{}
		r.known[is.key(user)] = e
	}
	done := make(chan struct{})
	e.busy = done
	before := *e
	r.jobs.Go(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(r.ctx, jobTime)
		defer cancel()
		after, err := r.work(ctx, user, is, before)
		if err != nil && r.ctx.Err() == nil {
			r.logger.Debug("an issue was not rated", "user", user, "provider", is.Provider, "error", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		*e = after
	})
	return e
}

// room makes place for one more. Any one goes: a wrong guess costs one question.
func (r *Rater) room() {
	if len(r.known) < maxKept {
		return
	}
	for k, e := range r.known {
		if e.busy == nil {
			delete(r.known, k)
			return
		}
	}
}

// work looks at an issue, and asks the model if it says something new.
func (r *Rater) work(ctx context.Context, user string, is Issue, old entry) (entry, error) {
	old.busy = nil
	failed := old
	failed.until = time.Now().Add(pause)
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return failed, ctx.Err()
	}
	issue, err := is.Read(ctx)
	if err != nil {
		return failed, err
	}
	sum := idempotency.Digest(append([]string{issue.Title, issue.Body, issue.State}, issue.Comments...)...)
	if old.rating == nil || old.sum != sum {
		answer, err := r.ask(ctx, user, system, question(is.Repository, issue))
		if err != nil {
			return failed, err
		}
		rating, err := parse(answer)
		if err != nil {
			return failed, err
		}
		old.rating, old.sum = &rating, sum
	}
	old.until = time.Now().Add(fresh)
	return old, nil
}

func (r *Rater) wait(ctx context.Context, all []<-chan struct{}) {
	if len(all) == 0 {
		return
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for _, busy := range all {
		select {
		case <-busy:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
