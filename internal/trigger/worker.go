package trigger

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/session"
)

const (
	// atOnce is how many things are done at the same time, each about another
	// issue or another conversation.
	atOnce = 8
	// manyDue is enough to fill all places, whoever must be passed over.
	manyDue = 128
	// stepTime is how long one thing may take: some questions to a provider.
	stepTime = 2 * time.Minute
	// storeAgain is how long to wait when the store fails.
	storeAgain = 5 * time.Second
)

// Config is what the Worker needs.
type Config struct {
	Inbox    Inbox
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
	// Page is where people read a conversation, "" if nobody knows.
	Page   func(id session.ID) string
	Logger *slog.Logger
}

// Start is a conversation that shall be created.
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
	ended chan string
	busy  map[string]bool // what is being done; only Run touches it

	mu sync.Mutex
	// awaited are the conversations whose answers are to be posted, with how often each was
	// told something, and grown those of them that something happened in.
	awaited map[session.ID]int
	grown   map[session.ID]bool
}

// NewWorker makes one. It must be told when sessions grow: see session.Observer.
func NewWorker(c Config) *Worker {
	return &Worker{Config: c, poked: make(chan struct{}, 1), ended: make(chan string, atOnce), busy: map[string]bool{},
		awaited: map[session.ID]int{}, grown: map[session.ID]bool{}}
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
		if !pause(ctx) {
			return nil
		}
	}
	for {
		wake := w.fill(ctx)
		select {
		case <-ctx.Done():
			for len(w.busy) > 0 {
				delete(w.busy, <-w.ended)
			}
			return nil
		case lane := <-w.ended:
			delete(w.busy, lane)
		case <-w.poked:
		case <-wake:
		}
	}
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

// fill begins all that may be begun now. The channel says when to look again, if
// nothing happens before.
func (w *Worker) fill(ctx context.Context) <-chan time.Time {
	if ctx.Err() != nil {
		return nil
	}
	now := time.Now()
	due, next, err := w.Inbox.Due(ctx, now, manyDue)
	if err != nil {
		w.complain(ctx, "cannot read deliveries", err)
		return time.After(storeAgain)
	}
	for _, d := range due {
		if d.State == Working {
			w.begin("session "+string(d.Session), func() { w.answer(ctx, d.Session) })
			continue
		}
		w.begin(laneOf(d), func() { w.act(ctx, d) })
	}
	for _, id := range w.ready() {
		w.begin("session "+string(id), func() { w.answer(ctx, id) })
	}
	if next.IsZero() {
		return nil
	}
	return time.After(next.Sub(now))
}

// laneOf is what deliveries share that must be dealt with one after the other.
func laneOf(d Delivery) string {
	kind := "issue "
	if d.Pull {
		kind = "pull "
	}
	return kind + d.Integration + " " + d.Repository + " " + itoa(d.Number)
}

// ready takes the conversations that grew and may be done with.
func (w *Worker) ready() []session.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []session.ID
	for id := range w.grown {
		if st, known := w.Sessions.Peek(id); known && st.Busy() {
			delete(w.grown, id) // it grows again before it ends
			continue
		}
		if !w.busy["session "+string(id)] && len(w.busy)+len(out) < atOnce {
			delete(w.grown, id)
			out = append(out, id)
		}
	}
	return out
}

// begin does something unless its like is being done or there is no place; the
// end of either makes us look again.
func (w *Worker) begin(lane string, do func()) {
	if w.busy[lane] || len(w.busy) >= atOnce {
		return
	}
	w.busy[lane] = true
	go func() {
		do()
		w.ended <- lane
	}()
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
		if !pause(ctx) {
			return
		}
	}
}

func (w *Worker) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		w.Logger.Error(what, "error", err)
	}
}

// pause waits a little after a failure of the store; false if ctx ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(storeAgain):
		return true
	}
}
