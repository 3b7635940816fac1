package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/agent/backlog"
	"deckhand/internal/agent/lately"
	"deckhand/internal/cluster"
	"deckhand/internal/conversation"
	"deckhand/internal/llm"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// Profile is with what an agent works in one session: read from the settings
// whenever the loop takes it up.
type Profile struct {
	Agent     string
	Model     llm.Model
	ModelName string
	Info      llm.Info
	System    string
	// Small makes titles and summaries, and Fallback continues a turn when Model fails; nil is Model itself, or none.
	Small, Fallback *Alternative
	// MaxAsks is how many model calls one turn may make.
	MaxAsks int
	// Budget limits the conversation's cost; nil does not.
	Budget *session.Money
	// Tools are those that are always there. More gives those that come and go,
	// of tool servers; it may wait for servers that are being started. nil is none.
	Tools []tool.Tool
	More  func(ctx context.Context) []tool.Tool
	// Confirm has risky calls wait for the person. Analyzer says who rates them:
	// "llm" is the model itself, "rules" is package risk, "" turns rating off.
	Confirm  bool
	Analyzer string
	// Condense summarises old history; without it, old history is dropped.
	Condense bool
	// MaxMessages is how many messages the history may have before it is condensed;
	// 0 is no limit.
	MaxMessages int
	// Title has the model name the conversation after its first turn. Until then,
	// and without it, the title is the first words of the task.
	Title bool
	// Warm has the sandbox started with the first model call, since it takes a
	// while. Otherwise it is started when the first tool needs it.
	Warm bool
	// Masker hides the owner's secrets in what comes out of the sandbox; nil hides nothing.
	Masker *secret.Masker
}

// Alternative is another model than the conversation's.
type Alternative struct {
	Model llm.Model
	Name  string
	Info  llm.Info
}

// with is the profile with another model; nil keeps its own.
func (p Profile) with(a *Alternative) Profile {
	if a != nil {
		p.Model, p.ModelName, p.Info = a.Model, a.Name, a.Info
	}
	return p
}

func (p Profile) mask(s string) string { return p.Masker.String(s) }

// ProfileError is a profile that cannot be had: the conversation fails to
// start and shows ID and Reason.
type ProfileError struct{ ID, Reason string }

func (e *ProfileError) Error() string { return e.Reason }

// Deltas takes fragments of an answer while it is being written. Hold takes what was
// written after them and may not be shown yet; the next delta begins with it.
type Deltas interface {
	Delta(id session.ID, call, text string)
	Hold(id session.ID, call, text string)
	EndDelta(id session.ID, call string)
}

// Config is what a Loop needs.
type Config struct {
	Sessions *session.Sessions
	Log      session.Log
	Index    session.Index
	// Member is the name under which this loop claims sessions: that of the process
	// in the cluster. Leases say which other members are alive, and Wakes what they
	// changed. Without them the loop is the only member of a cluster of its own.
	Member string
	Leases cluster.Leases
	Wakes  cluster.Wakes
	// MayTake returns an error for a session that another member should work on, although no live one holds it; nil allows all.
	MayTake func(ctx context.Context, st session.State) error
	// Profile finds out with what to work on a session.
	Profile func(ctx context.Context, st session.State) (Profile, error)
	// Recall finds what the agent should know when a message is said; nil nothing.
	Recall func(ctx context.Context, st session.State, said session.UserSaid, o Occasion) (session.Recalled, error)
	// Delegate creates the conversation for a task that the agent delegates, and finds one that it created before.
	Delegate func(ctx context.Context, d conversation.Delegate) error
	// Shell runs the commands that people type; nil refuses them.
	Shell tool.Tool
	// Picture turns the address of an image into a data: URL; nil passes it on.
	Picture func(ctx context.Context, url string) (string, error)
	// Script takes a recorded trajectory apart; nil knows none.
	Script func(raw string) ([]Recorded, error)
	// Worked is told what a stretch of work came to; nil is not.
	Worked func(owner string, w Work)
	// Approval says what happens to an approval without a decision.
	Approval Approval
	// Retry is how failed model calls are tried again; zero values are the defaults.
	Retry Retry
	// Workspaces gives the sandboxes that tools work in; nil if there are no tools.
	Workspaces Workspaces
	Deltas     Deltas
	Logger     *slog.Logger
	// Starters is how many sessions may be claimed at the same time (default 4).
	// It is small on purpose: while requests pour in, claiming must not crowd
	// them out; when they stop, a few starters clear any backlog at once.
	Starters int
	// Busy says that requests are waiting for the store. While it does, a starter
	// takes a break before each session, so that answering people comes first.
	// The break is short: sessions are started all the same. nil is never.
	Busy func() bool
	// Admission limits how many sessions run; nil means no limit.
	Admission *backlog.Gate
}

// Occasion is when something is said.
type Occasion struct {
	// First is true for the first message of the conversation.
	First bool
	// Known are the names of what was recalled before.
	Known []string
}

// Work is a stretch of work in numbers.
type Work struct {
	Model  string
	Asks   int
	Calls  map[string]int // by the name of the tool
	Input  int64          // tokens
	Output int64
	State  session.AgentState // how it ended
}

// Approval is a deadline for people, 0 for none, and what then holds.
type Approval struct {
	Within time.Duration
	Accept bool
}

// maxQueue bounds the memory of the queue. What does not fit is found again in the index.
const maxQueue = 10_000

// Loop implements session.Watcher. Make it with New, then call Run.
type Loop struct {
	Config

	mu       sync.Mutex
	queue    *backlog.Queue
	working  map[session.ID]*worker
	failures map[session.ID]int
	resting  atomic.Int32 // starters that have nothing to do
	overflow bool
	closed   bool
	wake     chan struct{}
	workers  sync.WaitGroup
	// memberGone is set when another member left: its sessions may be taken over.
	memberGone chan struct{}
	// watched are sessions with callers that wait for new events.
	watched map[session.ID]map[chan struct{}]bool

	schemas     schemas
	wired       wired
	transcripts *lately.Cache[*transcript] // a missing one is read from the log
}

// New makes a loop. Without a Member it has a name of its own, so that what a
// predecessor claimed is recognised as another's.
func New(c Config) *Loop {
	if c.Starters == 0 {
		c.Starters = 4
	}
	c.Retry = c.Retry.OrDefault()
	if c.Member == "" {
		var b [6]byte
		_, _ = rand.Read(b[:])
		c.Member = "loop-" + hex.EncodeToString(b[:])
	}
	if c.Leases == nil {
		c.Leases = cluster.NewMemory(0, nil)
	}
	if c.Wakes == nil {
		c.Wakes = cluster.NewMemory(0, nil)
	}
	l := &Loop{
		Config: c, memberGone: make(chan struct{}, 1),
		queue: backlog.New(maxQueue), working: map[session.ID]*worker{}, failures: map[session.ID]int{}, watched: map[session.ID]map[chan struct{}]bool{}, wake: make(chan struct{}, 1),
		transcripts: lately.New[*transcript](),
	}
	c.Admission.OnGrant(l.admit)
	return l
}

// Changed implements session.Watcher: it never blocks. What happens to a session that
// was taken up before is urgent: a person waits for the reply.
func (l *Loop) Changed(r session.Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.grew(r.ID, r.Last):
	case r.Holder == "" && l.Admission.AwaitRelease(r.ID, r.Owner):
	case r.Holder != "" && r.Holder != l.Member && l.Admission.OnOtherServer(r.ID): // it is notified
	default:
		l.enqueue(backlog.Entry{ID: r.ID, Owner: r.Owner, Last: r.Last, Urgent: r.Holder != ""})
	}
}

// grew tells those who wait for the session to grow, and its worker; false if it
// has none. It is called with mu held.
func (l *Loop) grew(id session.ID, last int64) bool {
	for c := range l.watched[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	w := l.working[id]
	if w != nil {
		w.grew(last)
	}
	return w != nil
}

// Working is how many sessions are being worked on.
func (l *Loop) Working() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.working)
}

// Waiting returns how many sessions wait to be worked on, or for a slot.
func (l *Loop) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Len() + l.Admission.Waiting()
}

// enqueue is called with mu held.
func (l *Loop) enqueue(e backlog.Entry) {
	if l.closed {
		return
	}
	if !l.queue.Add(e) {
		l.overflow = true
	}
	l.poke()
}

// poke wakes a starter.
func (l *Loop) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// longestPause bounds how long slots are withheld at the start, until all sessions found have asked for one.
const longestPause = 5 * time.Second

// Run works until ctx ends, then waits for what is under way. Model calls are
// aborted and made again after the next start.
func (l *Loop) Run(ctx context.Context) error {
	leave, err := l.join(ctx)
	if err != nil {
		return err
	}
	defer leave()
	l.Admission.Pause(longestPause)
	defer l.Admission.Resume()
	l.resume(ctx)
	var starters sync.WaitGroup
	for range l.Starters {
		starters.Go(func() { l.start(ctx) })
	}
	starters.Go(func() { l.sweep(ctx) })
	<-ctx.Done()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	starters.Wait()
	l.workers.Wait()
	return nil
}

// start claims queued sessions one after the other and lets each go on by itself.
func (l *Loop) start(ctx context.Context) {
	for {
		e, ok := l.next(ctx)
		if !ok {
			return
		}
		l.giveWay(ctx)
		l.take(ctx, e)
	}
}

// Giving way: how long at most, and how often to look.
const (
	longestBreak = 250 * time.Millisecond
	breakStep    = 5 * time.Millisecond
)

// giveWay lets requests go first, for a moment.
func (l *Loop) giveWay(ctx context.Context) {
	if l.Busy == nil {
		return
	}
	for waited := time.Duration(0); waited < longestBreak && l.Busy(); waited += breakStep {
		select {
		case <-ctx.Done():
			return
		case <-time.After(breakStep):
		}
	}
}

// next waits for a session to take up.
func (l *Loop) next(ctx context.Context) (backlog.Entry, bool) {
	for {
		l.mu.Lock()
		if e, ok := l.queue.Next(); ok {
			if l.queue.Len() > 0 {
				l.poke()
			}
			l.mu.Unlock()
			return e, true
		}
		again := l.overflow
		l.overflow = false
		l.mu.Unlock()
		if again {
			l.resume(ctx)
			continue
		}
		if l.resting.Add(1) == int32(l.Starters) { // all sessions found at the start have asked for a slot
			l.Admission.Resume()
		}
		select {
		case <-ctx.Done():
			return backlog.Entry{}, false
		case <-l.wake:
		}
		l.resting.Add(-1)
		if ctx.Err() != nil {
			return backlog.Entry{}, false
		}
	}
}

// sweepEvery is how often the index is queried for sessions whose notification was lost.
const sweepEvery = 30 * time.Second

// sweep finds sessions whose wake-up was lost, as it is when the store fails
// after it has stored, and those of a member that left: telling is an
// optimisation, the log is the truth.
func (l *Loop) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.memberGone:
		}
		l.resume(ctx)
	}
}

// resume queues the sessions that were left with something to do and that no
// other live member holds. It looks at all of them, so that the queue has some of
// every owner when there are more than it holds.
func (l *Loop) resume(ctx context.Context) {
	held, err := cluster.Others(ctx, l.Leases, l.Member)
	if err == nil {
		for s, failure := range l.Index.Wanting(ctx, held) {
			if err = failure; err != nil {
				break
			}
			l.enqueueIdle(backlog.Entry{ID: s.ID, Owner: s.Owner})
		}
	}
	if err != nil && ctx.Err() == nil {
		l.Logger.Error("cannot look for unfinished conversations", "error", err)
	}
}

// enqueueIdle queues a session unless it is being worked on, or is in a queue for a slot.
func (l *Loop) enqueueIdle(e backlog.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.working[e.ID] == nil && !l.Admission.Waits(e.ID) && !l.Admission.OnOtherServer(e.ID) {
		l.enqueue(e)
	}
}

// admit takes up a session that got a slot after waiting.
func (l *Loop) admit(id session.ID, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && l.queue.Grant(backlog.Entry{ID: id, Owner: owner}) {
		l.poke()
	}
}

// admitted reports whether the worker may continue. If its session has to wait for a slot, the worker ends, and another one
// starts when there is a slot. A session that waits for a person has no slot. Long turns, and sessions between two turns,
// give their slots to sessions that should have them.
func (l *Loop) admitted(ctx context.Context, w *worker, st session.State, betweenTurns bool) bool {
	if !backlog.Needs(st) {
		if w.placed {
			l.Admission.Leave(w.id)
		}
		w.placed = false
		return true
	}
	e := backlog.Wanted(st, st.ID)
	if st.Created.Parent != "" {
		e.Root = l.top(ctx, st).ID
	}
	switch stepping := st.Ask != nil || len(st.Open)+len(st.Announced) > 0; {
	case !w.placed && st.Typing(): // commands that people type need no slot
		return true
	case !w.placed:
		w.placed = l.Admission.Enter(e)
	case !stepping:
		w.placed = !l.Admission.GiveWay(e, betweenTurns)
	}
	w.queued = !w.placed
	return w.placed
}
