package workspace

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// Suspension says when unused sandboxes are suspended: they end, and the next use continues
// them. It needs a driver that is a sandbox.Suspender.
type Suspension struct {
	// After is how long a sandbox is unused before it is suspended; 0 is never.
	After time.Duration
	// MaxLive is how many sandboxes may run before those that were not used for the longest
	// time are suspended earlier; 0 is any number. One in which something runs is not
	// suspended, so there can be more. One of eight may be of conversations that had one
	// turn only and that have no followers: many short tasks do not end the sandboxes of
	// conversations that go on.
	MaxLive int
	// Followed reports whether a session has followers, such as an open page: its user is
	// likely to go on. nil is never.
	Followed func(session.ID) bool
	// Settle is how long a sandbox is unused at least before it is suspended for being one too
	// many: the next command of an agent that works comes sooner. Default: a second.
	Settle time.Duration
}

const (
	// settleTime is the default of Suspension.Settle.
	settleTime = time.Second
	// soonAgain is how many times After a suspended sandbox may rest to count as used again soon.
	soonAgain = 4
	// maxSuspending is how many sandboxes are suspended at the same time.
	maxSuspending = 32
	// maxOver is how many times MaxLive may run because they are used again soon.
	maxOver = 2
	// maxBackoff bounds how often a sandbox is asked that refuses: at most so many times After.
	maxBackoff = 16
)

// idleness is what a place knows of being unused. The keeper's mu guards it.
type idleness struct {
	since   time.Time
	timer   *time.Timer
	refused int // how often in a row it could not be suspended
	// suspending is true while it is being suspended: its end is no loss then.
	suspending bool
	// grace is how long it is left alone although there are too many; 0 for as long as others.
	grace time.Duration
}

// suspendedSince is when a sandbox was suspended, and after which grace.
type suspendedSince struct {
	at    time.Time
	grace time.Duration
}

// suspended are the suspended sandboxes, and how many may be on the way there.
type suspended struct {
	ids     map[session.ID]suspendedSince // guarded by the keeper's mu
	slots   chan struct{}
	recheck *time.Timer // looks again whether there are too many
}

// used notes that a place has a user. Called with mu held.
func (i *idleness) used() {
	if i.timer != nil {
		i.timer.Stop()
	}
}

// unused notes that a place has lost its last user. Called with mu held.
func (k *Keeper) unused(p *place) {
	p.idle.since, p.idle.refused = time.Now(), 0
	k.suspendIn(p, k.Suspension.After)
}

// suspendIn has a place suspended after a while. Called with mu held.
func (k *Keeper) suspendIn(p *place, after time.Duration) {
	if _, ok := k.Driver.(sandbox.Suspender); !ok || k.Suspension.After <= 0 || k.closed {
		return
	}
	if p.idle.timer != nil {
		p.idle.timer.Stop()
	}
	p.idle.timer = time.AfterFunc(after, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.suspendNow(p)
	})
}

// suspendNow has a place suspended that is unused. Called with mu held.
func (k *Keeper) suspendNow(p *place) {
	if k.closed || p.users > 0 || p.box == nil || p.ending || p.idle.suspending {
		return
	}
	p.idle.suspending = true
	k.tasks.Go(func() { k.suspendPlace(p) })
}

// suspendPlace suspends a place. A user who comes while it is at it waits, and continues the sandbox.
func (k *Keeper) suspendPlace(p *place) {
	err := k.ctx.Err()
	select {
	case k.suspended.slots <- struct{}{}:
		ctx, cancel := context.WithTimeout(k.ctx, endTime)
		err = k.suspend(ctx, p)
		cancel()
		<-k.suspended.slots
	case <-k.ctx.Done():
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.idle.suspending = false
	if p.box == nil || k.closed {
		return
	}
	k.limit() // it is still one too many
	select {
	case <-p.box.Done(): // it ended without being suspended, and its watcher looked away
		box := p.box
		k.tasks.Go(func() { k.watch(p, box) })
		return
	default:
	}
	if p.users > 0 {
		return
	}
	if err != nil && !errors.Is(err, sandbox.ErrInUse) && !errors.Is(err, errRecent) {
		k.Logger.Debug("cannot suspend a sandbox", "session", p.id, "error", err)
	}
	p.idle.refused++
	k.suspendIn(p, k.Suspension.After*time.Duration(min(1<<min(p.idle.refused, 10), maxBackoff)))
}

// errRecent says that a sandbox has a user again, or that the log does not have it.
var errRecent = errors.New("the sandbox is used again")

func (k *Keeper) suspend(ctx context.Context, p *place) error {
	again, leave, err := k.enterLocked(ctx, p.id)
	if err != nil {
		return err
	}
	defer leave()
	st, err := k.Sessions.Load(ctx, p.id)
	if err != nil {
		return err
	}
	h, err := k.handle(st)
	if err != nil {
		return err
	}
	k.mu.Lock()
	box := p.box
	// What the log does not have would be taken for a new sandbox when it continues.
	if again != p || p.users > 1 || box == nil || !st.Up || h.Boot != box.Info().Boot {
		k.mu.Unlock()
		return errRecent
	}
	p.ending = true // decided at one moment with the count of users
	k.mu.Unlock()
	err = k.Driver.(sandbox.Suspender).Suspend(ctx, h.Handle, box)
	k.mu.Lock()
	p.ending = false
	if err == nil {
		p.box, k.suspended.ids[p.id] = nil, suspendedSince{time.Now(), p.idle.grace}
	}
	k.mu.Unlock()
	if err == nil {
		err = box.Close()
	}
	return err
}

// settle is how long a sandbox is unused at least before limit suspends it.
func (k *Keeper) settle() time.Duration {
	return min(cmp.Or(k.Suspension.Settle, settleTime), max(k.Suspension.After, time.Millisecond))
}

// limit suspends sandboxes of which there are too many. Called with mu held.
func (k *Keeper) limit() {
	if _, ok := k.Driver.(sandbox.Suspender); !ok || k.Suspension.MaxLive <= 0 || k.Suspension.After <= 0 || k.closed {
		return
	}
	var live, unused []*place
	for _, p := range k.places {
		if p.box != nil && !p.idle.suspending {
			live = append(live, p)
		}
	}
	tooMany, tooNew := len(live)-k.Suspension.MaxLive, -max(k.Suspension.MaxLive/8, 1)
	if len(live) <= -tooNew { // the usual case, which must be cheap
		return
	}
	for _, p := range live {
		if k.isNew(p.id) {
			tooNew++
		}
		if p.users == 0 && p.idle.refused == 0 {
			unused = append(unused, p)
		}
	}
	if tooMany <= 0 && tooNew <= 0 {
		return
	}
	slices.SortFunc(unused, func(a, b *place) int { return a.idle.since.Compare(b.idle.since) })
	for _, p := range unused {
		isNew := k.isNew(p.id)
		if tooMany <= 0 && (tooNew <= 0 || !isNew) {
			continue
		}
		tooMany--
		if isNew {
			tooNew--
		}
		grace := p.idle.grace
		if len(live) > maxOver*k.Suspension.MaxLive { // memory comes before speed
			grace = 0
		}
		if time.Since(p.idle.since) >= max(grace, k.settle()) {
			k.suspendNow(p)
		}
	}
	if k.suspended.recheck == nil {
		k.suspended.recheck = time.AfterFunc(k.settle()/4, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.suspended.recheck = nil
			k.limit()
		})
	}
}

// isNew is true for a conversation that has had its first turn only, and that has no followers.
func (k *Keeper) isNew(id session.ID) bool {
	st, ok := k.Sessions.Peek(id)
	return ok && !st.InTurn && st.Turns <= 1 && (k.Suspension.Followed == nil || !k.Suspension.Followed(id))
}

// prepareStart prepares the start of a sandbox that may be suspended. What was suspended before
// its session was stopped is not continued.
func (k *Keeper) prepareStart(ctx context.Context, st session.State, h sandbox.Handle) error {
	k.mu.Lock()
	was, found := k.suspended.ids[st.ID]
	delete(k.suspended.ids, st.ID)
	// Of more conversations that work than may have a sandbox, each would be suspended between
	// two commands. The next time it is left alone for twice as long.
	if p := k.places[st.ID]; found && p != nil && time.Since(was.at) < soonAgain*k.Suspension.After {
		p.idle.grace = min(2*max(was.grace, k.settle()), k.Suspension.After)
	}
	k.mu.Unlock()
	if s, ok := k.Driver.(sandbox.Suspender); ok && !st.Up {
		return s.Discard(ctx, h)
	}
	return nil
}
