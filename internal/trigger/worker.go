package trigger

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/queue"
	"deckhand/internal/session"
)

const (
	// atOnce is how many things are done at the same time, each about another
	// issue or another conversation.
	atOnce = 8
	// stepTime is how long one thing may take: some questions to a provider.
	stepTime = 2 * time.Minute
)

// Config is what the Worker needs.
type Config struct {
	Inbox Inbox
	// Member is the process that the Worker belongs to.
	Member   queue.Member
	Sessions *session.Sessions
	Log      session.Log
	Index    session.Index
	// Forge opens a provider with what a user stored for it, and says at which host.
	Forge func(ctx context.Context, user, provider string) (forge gitprovider.Provider, host string, err error)
	// Start creates a conversation as its user would. What the user could mend is a
	// *RefusedError.
	Start func(ctx context.Context, s Start) error
	// Say records a message in a conversation of the user, as the user would. One that was delivered before changes
	// nothing. A conversation that is gone is session.ErrNotFound or session.ErrDeleted.
	Say func(ctx context.Context, user string, id session.ID, m session.UserSaid) (session.State, error)
	// Page returns the URL of a conversation's page, "" if unknown.
	Page   func(id session.ID) string
	Logger *slog.Logger
}

// Start is a conversation to create.
type Start struct {
	ID                                 session.ID
	User, Provider, Repository, Branch string
	// Text is the first message, and Key what recognises it.
	Text, Key string
	// Outside says that outsiders asked for it, or wrote what it is about.
	Outside session.Outside
}

// Worker does what the Receiver recorded. It is one per store.
type Worker struct {
	Config
	poked chan struct{}

	mu sync.Mutex
	// awaited are the conversations whose answers are to be posted, with how often each was
	// told something, and grown those of them that something happened in.
	awaited map[session.ID]int
	grown   map[session.ID]bool
}

// NewWorker makes one. It must be told when sessions grow: see session.Observer.
func NewWorker(c Config) *Worker {
	return &Worker{Config: c, poked: make(chan struct{}, 1), awaited: map[session.ID]int{}, grown: map[session.ID]bool{}}
}

// Wake says that something is to be done.
func (w *Worker) Wake() {
	select {
	case w.poked <- struct{}{}:
	default: // it was not looked at since the last time
	}
}

// Appended implements session.Observer.
func (w *Worker) Appended(id session.ID, _ int64) {
	w.mu.Lock()
	mine := w.awaited[id] > 0
	if mine {
		w.grown[id] = true
	}
	w.mu.Unlock()
	if mine {
		w.Wake()
	}
}

// await has a conversation looked at now, and whenever something happens in it.
func (w *Worker) await(id session.ID) {
	w.mu.Lock()
	w.awaited[id]++
	w.grown[id] = true
	w.mu.Unlock()
	w.Wake()
}

// Run works until ctx ends. What is under way then is taken up by the next Run.
func (w *Worker) Run(ctx context.Context) error {
	for !w.takeUp(ctx) {
		if !queue.Pause(ctx) {
			return nil
		}
	}
	r := queue.Runner{Member: w.Member, Store: w.Inbox, Logger: w.Logger, AtOnce: atOnce, Work: w.work, More: w.ready, Added: w.poked}
	return r.Run(ctx)
}

// takeUp awaits the conversations that an earlier Run told something.
func (w *Worker) takeUp(ctx context.Context) bool {
	found, err := w.Inbox.AtWork(ctx, "")
	if err != nil {
		w.complain(ctx, "cannot read deliveries", err)
		return false
	}
	for _, d := range found {
		w.await(d.Session)
	}
	return true
}

// work does what is to be done in a lane.
func (w *Worker) work(ctx context.Context, l queue.Lane) (released bool) {
	if id, ok := strings.CutPrefix(l.Name, sessionLane); ok {
		w.mu.Lock()
		delete(w.grown, session.ID(id)) // what happens from now on makes it grow again
		w.mu.Unlock()
		w.answer(ctx, session.ID(id), l.Claimed())
		return false
	}
	d, found, err := w.Inbox.Next(ctx, l.Name, time.Now())
	switch {
	case err != nil:
		w.complain(ctx, "cannot read deliveries", err)
		queue.Pause(ctx)
	case found:
		d.Claim = l.Claimed()
		w.act(ctx, d)
	}
	return false
}

// ready lists the conversations that grew and may be done with.
func (w *Worker) ready(room int, busy func(lane string) bool) []queue.Lane {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []queue.Lane
	for id := range w.grown {
		if st, known := w.Sessions.Peek(id); known && st.Busy() {
			delete(w.grown, id) // it grows again before it ends
			continue
		}
		if lane := sessionLane + string(id); len(out) < room && !busy(lane) {
			out = append(out, queue.Lane{Name: lane})
		}
	}
	return out
}

// settle records what became of deliveries. As long as that fails nothing else
// is done about them: it would be done again and again.
func (w *Worker) settle(ctx context.Context, ds ...Delivery) {
	for {
		err := w.Inbox.Settle(context.WithoutCancel(ctx), ds...)
		if err == nil {
			return
		}
		w.complain(ctx, "cannot record a delivery", err)
		if !queue.Pause(ctx) {
			return
		}
	}
}

func (w *Worker) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		w.Logger.Error(what, "error", err)
	}
}
