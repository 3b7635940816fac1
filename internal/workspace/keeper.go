package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/meter"
	"deckhand/internal/session"
	"deckhand/internal/workspace/diskuse"
	"deckhand/internal/workspace/handle"
	"deckhand/internal/workspace/origin"
)

// Config is what a Keeper needs.
type Config struct {
	Driver sandbox.Driver
	// Name is the driver's, as it stands in handles.
	Name     string
	Sessions *session.Sessions
	Index    session.Index
	// Spec returns the spec of a session's sandbox. The Keeper fills in its ID.
	Spec func(ctx context.Context, st session.State) (sandbox.Spec, error)
	// Prepare brings into a sandbox what the session needs before its first use, such as its
	// repository; nil does nothing. It is called each time a sandbox was attached to, so it must
	// be idempotent.
	Prepare func(ctx context.Context, st session.State, box *sandbox.Sandbox, tell func(sandbox.Progress)) error
	Logger  *slog.Logger
	// PerUser is how many sandboxes of one user may run at once; 0 is any number.
	PerUser int
	// DiskPerUser is how many bytes the workspaces of one user may take up before no more
	// sandboxes are started; 0 is any number. It needs a driver that is a sandbox.Measurer.
	DiskPerUser int64
	Suspension  Suspension
	// Machine is the name of this machine in handles, where several servers share the sessions; "" otherwise. Here returns
	// an error if another server works with the workspace of a session; may be nil.
	Machine string
	Here    func(session.State) error
	// Silence is how long a sandbox that is in use or attached to may take to answer before
	// it is ended and started again; 0 is sandbox.DefaultSilence.
	Silence time.Duration
	// OnEnded is told of sandboxes that were stopped or removed: nothing runs in them any
	// more, and nothing is started before it returns. It may be nil.
	OnEnded func(id session.ID)
	// Forgotten is told of workspaces that were removed; may be nil.
	Forgotten func(ctx context.Context, id session.ID)
}

// Keeper keeps sandboxes.
type Keeper struct {
	Config

	mu     sync.Mutex
	places map[session.ID]*place
	woken  map[session.ID]bool
	// strangers have a workspace that the driver keeps and no session that is known.
	strangers map[session.ID]bool
	// shares is what workspaces take up.
	shares diskuse.Table
	// busy is how many sandboxes were in use when they were counted.
	busy      int64
	counted   time.Time
	suspended suspended
	// recalled is true once all unrecorded restores of an earlier server are recorded.
	recalled atomic.Bool
	looked   origin.Looks
	saving   chan struct{} // a slot for each checkpoint that is being made
	wake     chan struct{}
	ctx      context.Context
	cancel   context.CancelFunc
	tasks    sync.WaitGroup
	closed   bool
}

// place is one session's sandbox while it is in use or running.
type place struct {
	id session.ID
	// turn is held while the sandbox is started, stopped or attached to.
	turn chan struct{}

	// The rest is guarded by the keeper's mu, and box is only changed with the turn held.
	box   *sandbox.Sandbox
	users int
	// owner is the owner of the sandbox, once it was opened; opening is true until then.
	owner   string
	opening bool
	// ending is true while the sandbox is being stopped for want of users: who
	// comes now waits for its end.
	ending bool
	// prepared is the box in which all is as the session needs it.
	prepared *sandbox.Sandbox
	// handle is how the sandbox is found, since the session's event after which
	// the connection was made.
	handle   stored
	since    int64
	limits   sandbox.Limits
	used     int64 // bytes on disk, as measured last; -1 if not measured
	restarts []time.Time
	ended    string // how its last runner ended, if not by itself
	idle     idleness
	saved    saving
}

// New returns a Keeper. Run does its background work.
func New(c Config) *Keeper {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Here == nil {
		c.Here = func(session.State) error { return nil }
	}
	if c.Silence <= 0 {
		c.Silence = sandbox.DefaultSilence
	}
	k := &Keeper{Config: c, places: map[session.ID]*place{}, woken: map[session.ID]bool{}, strangers: map[session.ID]bool{}, wake: make(chan struct{}, 1),
		saving: make(chan struct{}, maxSaving), suspended: suspended{ids: map[session.ID]suspendedSince{}, slots: make(chan struct{}, maxSuspending)}}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// stored is what stands in the log.
type stored = handle.Stored

// handle finds a session's sandbox: as the log says, or by its name alone.
func (k *Keeper) handle(st session.State) (stored, error) {
	if err := k.Here(st); err != nil {
		return stored{Handle: sandbox.Handle{Driver: k.Name, ID: string(st.ID)}}, err
	}
	return handle.Of(st, k.Name)
}

// enter finds the place of a session and counts the caller as its user.
func (k *Keeper) enter(id session.ID) (*place, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, context.Canceled
	}
	p := k.places[id]
	if p == nil {
		p = &place{id: id, turn: make(chan struct{}, 1)}
		k.places[id] = p
	}
	p.users++
	p.idle.used()
	return p, nil
}

// leave ends a use. The sandbox of a session that does not run goes with its
// last user.
func (k *Keeper) leave(p *place) {
	k.mu.Lock()
	p.users--
	idle := p.users == 0
	if idle && p.box == nil {
		delete(k.places, p.id)
		idle = false
	}
	if idle {
		k.unused(p)
	}
	k.mu.Unlock()
	if idle && !k.goesOn(p.id) {
		k.Wake(p.id)
	}
}

func (p *place) lock(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *place) unlock() { <-p.turn }

// alive is the connection, if there is one that lives.
func (k *Keeper) alive(p *place) *sandbox.Sandbox {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.box == nil {
		return nil
	}
	select {
	case <-p.box.Done():
		return nil
	default:
		return p.box
	}
}

// Use gives a session's sandbox, which is started if it does not run. Call
// release when done; the connection may end before, as any may.
// A sandbox that cannot be had is a *sandbox.Unavailable.
func (k *Keeper) Use(ctx context.Context, id session.ID) (box *sandbox.Sandbox, release func(), err error) {
	p, err := k.enter(id)
	if err != nil {
		return nil, nil, err
	}
	if box, err = k.open(ctx, p); err == nil {
		err = k.awaitCheckpoint(ctx, p)
	}
	if err != nil {
		k.leave(p)
		k.Wake(id) // if a stop was the reason, what runs there is ended
		return nil, nil, err
	}
	var once sync.Once
	return k.since(ctx, id, box), func() { once.Do(func() { k.leave(p) }) }, nil
}

// open attaches to the sandbox, or starts it.
func (k *Keeper) open(ctx context.Context, p *place) (*sandbox.Sandbox, error) {
	if err := p.lock(ctx); err != nil {
		return nil, err
	}
	defer p.unlock()
	if box := k.alive(p); box != nil {
		if err := k.prepare(ctx, p, box); err != nil {
			return nil, err
		}
		return box, k.confirm(ctx, p)
	}
	st, err := k.Sessions.Load(ctx, p.id)
	if err != nil {
		return nil, err
	}
	if st.Deleted {
		return nil, session.ErrNotFound
	}
	if err := k.stranger(st); err != nil {
		return nil, err
	}
	was, err := k.handle(st)
	if err != nil {
		return nil, err
	}
	spec, err := k.Spec(ctx, st)
	if err != nil {
		return nil, err
	}
	spec.ID, spec.Silence, spec.Last, spec.Copied = string(p.id), k.Silence, was.Handle, st.Created.Forked != nil
	opened, err := k.room(ctx, p, st)
	if err != nil {
		return nil, err
	}
	defer opened()
	if err := k.prepareStart(ctx, st, was.Handle); err != nil {
		return nil, err
	}
	told := k.steps(p.id)
	box, h, err := sandbox.Open(ctx, k.Driver, spec, told.Tell)
	silent := errors.Is(err, sandbox.ErrSilent)
	if silent { // left by a server before us; a new one answers or is an error
		k.endSilent(p, h)
		was.Boot = "" // its end is said
		box, h, err = sandbox.Open(ctx, k.Driver, spec, told.Tell)
	}
	told.End()
	if err != nil {
		k.clearStep(p.id)
		return nil, err
	}
	now := was.Next(k.Driver, h, box.Info().Boot, k.Machine)
	if now.Machine != k.Machine { // a server that is gone may have left a restore
		k.recalled.Store(false)
	}
	if st.Up && (silent || was.Boot != "" && was.Boot != now.Boot) {
		box.Restarted()
	}
	k.mu.Lock()
	first := p.since == 0 // otherwise tools may have used the sandbox that ended
	k.mu.Unlock()
	// It is kept before it is ready: its size is watched, and a stop ends it.
	k.keep(p, box, now, st.Last, spec.Limits.OrDefault(), told.Any())
	k.keepOpen(p, spec)
	if err := k.prepare(ctx, p, box); err != nil {
		return nil, err
	}
	if err := k.record(ctx, st, was, now); err != nil {
		return nil, err
	}
	k.checkpointNow(p, origin.Moment{Start: first, Last: st.Last})
	return box, nil
}

// prepare has the session's things brought into the sandbox, once for each
// connection. Called with the turn held.
func (k *Keeper) prepare(ctx context.Context, p *place, box *sandbox.Sandbox) error {
	k.mu.Lock()
	done := p.prepared == box
	k.mu.Unlock()
	if k.Prepare == nil || done {
		return nil
	}
	st, err := k.Sessions.Load(ctx, p.id)
	if err != nil {
		return err
	}
	told := k.steps(p.id)
	err = k.Prepare(ctx, st, box, told.Tell)
	told.End()
	if err != nil {
		k.clearStep(p.id)
		return err
	}
	// While the person is asked about scripts of the repository, the sandbox can be
	// looked into, and is prepared further at its next use. The answer may come at this
	// moment, so the session is loaded and not peeked at.
	if st, err = k.Sessions.Load(ctx, p.id); err != nil || st.Unprepared() {
		return err
	}
	k.mu.Lock()
	p.prepared = box
	k.mu.Unlock()
	return nil
}

// confirm records a sandbox that a user opened while no loop worked on the session, now that a
// loop uses it.
func (k *Keeper) confirm(ctx context.Context, p *place) error {
	st, ok := k.Sessions.Peek(p.id)
	if ok && (st.Claim == 0 || st.Up && st.Ready && st.Step == "") {
		return nil
	}
	k.mu.Lock()
	h := p.handle
	k.mu.Unlock()
	return k.record(ctx, session.State{ID: p.id}, stored{}, h)
}

// keep remembers a connection and watches it. started says that the runner was started for it.
// Called with the turn held.
func (k *Keeper) keep(p *place, box *sandbox.Sandbox, h stored, since int64, limits sandbox.Limits, started bool) {
	m := meter.New(&measured{Sandbox: box, keeper: k, place: p, empty: started}, limits.Disk)
	box.WhenFull(func() bool { return m.Full(k.ctx) })
	k.mu.Lock()
	old := p.box
	p.box, p.handle, p.since, p.limits, p.used = box, h, since, limits, -1
	box.After(p.ended)
	p.ended = ""
	if k.closed {
		old, p.box = box, old // too late to be kept
	} else {
		k.tasks.Go(func() { k.watch(p, box) })
		k.tasks.Go(func() { k.watchDisk(p, box, m) })
		k.tasks.Go(func() { k.watchHealth(p, box, h.Handle, limits.Processes) })
		k.limit()
	}
	k.mu.Unlock()
	if old != nil {
		old.Close()
	}
}

// record says in the log where the sandbox is, and that it was lost if it was.
func (k *Keeper) record(ctx context.Context, st session.State, was, now stored) error {
	handle, err := json.Marshal(now)
	if err != nil {
		return err
	}
	_, err = k.Sessions.Update(ctx, st.ID, func(s session.State) ([]session.Payload, error) {
		if s.Claim == 0 { // not claimed: a user opened it, and the sandbox is found by its name
			return nil, nil
		}
		ready, err := s.Prepared(s.Claim, session.WorkspaceReady{Handle: handle})
		if err == nil && len(ready) > 0 && s.Up && was.Boot != "" && was.Boot != now.Boot {
			k.Logger.Warn("sandbox had ended and was restarted", "session", s.ID)
			ready = append([]session.Payload{lost}, ready...)
		}
		return ready, err
	})
	return err
}

// lost is what people are told of a sandbox that ended by itself.
var lost = session.Noted{ID: "STATUS$ERROR_RUNTIME_DISCONNECTED",
	Message: "The sandbox had ended and was restarted. Running processes were lost; the workspace files are kept."}

// maxRestarts is how often in restartSpan a sandbox that keeps dying is started again by itself.
const (
	maxRestarts = 3
	restartSpan = time.Minute
)

// watch notices that a sandbox is gone, and starts it again if its session runs.
func (k *Keeper) watch(p *place, box *sandbox.Sandbox) {
	select {
	case <-box.Done():
	case <-k.ctx.Done():
		return
	}
	k.mu.Lock()
	mine := p.box == box && !p.idle.suspending
	now := time.Now()
	recent := p.restarts[:0]
	for _, at := range p.restarts {
		if now.Sub(at) < restartSpan {
			recent = append(recent, at)
		}
	}
	p.restarts = append(recent, now)
	again := mine && len(recent) < maxRestarts && !k.closed
	if again {
		p.users++
	}
	k.mu.Unlock()
	if !mine {
		return
	}
	defer box.Close()
	if !again {
		k.drop(p, box)
		return
	}
	defer k.leave(p)
	row, err := k.Index.Row(k.ctx, p.id)
	if err != nil || row.Status == session.Halted || row.Deleted {
		k.drop(p, box)
		return
	}
	if _, err := k.open(k.ctx, p); err != nil && k.ctx.Err() == nil {
		k.drop(p, box)
		k.Logger.Error("cannot restart a sandbox", "session", p.id, "error", err)
		k.note(p.id, session.Noted{ID: lost.ID, Error: true, Message: "The sandbox has ended and cannot be restarted: " + plain(err)})
	}
}

// drop forgets a connection that is lost.
func (k *Keeper) drop(p *place, box *sandbox.Sandbox) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.box == box {
		p.box = nil
	}
	if p.users == 0 && p.box == nil {
		delete(k.places, p.id)
	}
}

// note adds a notice for the user to a claimed session.
func (k *Keeper) note(id session.ID, n session.Noted) {
	_, err := k.Sessions.Update(k.ctx, id, func(s session.State) ([]session.Payload, error) {
		if s.Claim == 0 || s.Deleted {
			return nil, nil
		}
		return []session.Payload{n}, nil
	})
	if err != nil && k.ctx.Err() == nil && !errors.Is(err, session.ErrDeleted) {
		k.Logger.Error("cannot record a note about a sandbox", "session", id, "error", err)
	}
}

// plain is a reason in words for the person whose conversation it is.
func plain(err error) string {
	var u *sandbox.Unavailable
	if errors.As(err, &u) {
		return u.Reason
	}
	return "see the server log."
}
