package workspace

import (
	"context"
	"errors"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace/gate"
	"deckhand/internal/workspace/origin"
)

// ErrNoCheckpoints means that workspaces of this server have no checkpoints.
var ErrNoCheckpoints = errors.New("the sandbox driver of this server keeps no checkpoints")

// ErrNoCheckpoint and ErrTooBig are those of drivers.
var ErrNoCheckpoint, ErrTooBig = sandbox.ErrNoCheckpoint, sandbox.ErrTooBig

const (
	// maxSaving is the maximum number of checkpoints that are made at the same time.
	maxSaving = 2
	// saveTime is the timeout for a checkpoint, maxSaveWait the time that a command waits for it. After that the command
	// runs, and the checkpoint has each file as it was before or after.
	saveTime    = 2 * time.Minute
	maxSaveWait = 10 * time.Second
)

// saving is what a place knows of its checkpoints. The keeper's mu guards it.
type saving struct {
	// used is true if the sandbox was used since the last checkpoint was begun.
	used bool
	// gate is held while a checkpoint is being made or files are being restored. It has its own lock, and is left by leaveGate.
	gate gate.Gate
	// next is the checkpoint of a stop that came while the gate was held; nil if there was none.
	next *origin.Moment
	// off is true if the workspace is too large.
	off bool
	// passed is true if a command did not wait for the checkpoint that is being made.
	passed bool
	// open is true if users can change the files without the keeper.
	open bool
	// begins is true from the message or the resumption that begins the agent's work until its end, paused while it is paused.
	begins, paused bool
	// waits is true while the agent waits for an approval, quiet if no call was running when it began to.
	waits, quiet bool
}

// keepOpen remembers whether users can change the files of a sandbox without the keeper: in a folder of theirs, or because
// there is no sandbox around them.
func (k *Keeper) keepOpen(p *place, spec sandbox.Spec) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, bare := k.Driver.(sandbox.Bare)
	p.saved.open = bare || spec.Folder != ""
}

// SameFolder reports whether two sessions work in the same folder of this machine.
func (k *Keeper) SameFolder(ctx context.Context, a, b session.State) (bool, error) {
	one, err := k.Spec(ctx, a)
	if err != nil || one.Folder == "" {
		return false, err
	}
	other, err := k.Spec(ctx, b)
	return err == nil && one.Folder == other.Folder, err
}

// turnChanged makes a checkpoint when the agent stops or waits, and one before it goes on if others may have changed files since. It never blocks.
func (k *Keeper) turnChanged(row session.Row) {
	k.mu.Lock()
	p := k.places[row.ID]
	if p == nil || row.Deleted {
		k.mu.Unlock()
		return
	}
	s := &p.saved
	running, works := row.Agent == session.AgentRunning, row.Agent == session.AgentRunning || row.Wants
	waits := row.Agent == session.AgentAwaitingYes
	begins := running && s.paused || !running && row.Wants && !s.begins && !waits || works && s.waits && !waits
	m := origin.Moment{Start: begins, Stop: !begins, Waited: begins && s.waits && s.quiet, Last: row.Last}
	due := s.used && (begins || !running) || p.users > 0 && begins || s.open && (begins || s.begins && !running)
	if waits && !s.waits {
		s.quiet = !s.used // a call that runs uses the sandbox
	}
	s.begins, s.paused, s.waits = works && !waits, row.Agent == session.AgentPaused, waits
	due = due && p.box != nil
	k.mu.Unlock()
	if due {
		k.checkpointNow(p, m)
	}
}

// checkpointNow makes a checkpoint in the background. While the gate is held, the checkpoint of a stop is made next, and others are left out: what they would have is in the one that is being made.
func (k *Keeper) checkpointNow(p *place, m origin.Moment) {
	if _, ok := k.Driver.(sandbox.Checkpointer); !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || p.saved.off {
		return
	}
	leave, ok := p.saved.gate.Try()
	switch {
	case ok:
		k.checkpointInside(p, m, leave)
	case m.Stop:
		p.saved.next = &m
	}
}

// checkpointInside makes a checkpoint in the background, and then leaves the gate. It is called with mu and the gate held.
func (k *Keeper) checkpointInside(p *place, m origin.Moment, leave func()) {
	p.saved.used, p.saved.passed = false, false
	k.tasks.Go(func() {
		k.checkpoint(p, m)
		k.leaveGate(p, leave)
	})
}

// leaveGate leaves the gate of a place, after the checkpoint that waits for it, if there is one.
func (k *Keeper) leaveGate(p *place, leave func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := p.saved.next
	p.saved.next = nil
	if next == nil || k.closed || p.saved.off {
		leave()
		return
	}
	k.checkpointInside(p, *next, leave)
}

// checkpoint makes one checkpoint, unless it is left to the end of the turn.
func (k *Keeper) checkpoint(p *place, m origin.Moment) {
	due, err := true, error(nil)
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		p.saved.used = p.saved.used || !due || err != nil && !errors.Is(err, sandbox.ErrTooBig)
		p.saved.off = errors.Is(err, sandbox.ErrTooBig)
	}()
	select {
	case k.saving <- struct{}{}:
		defer func() { <-k.saving }()
	case <-k.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(k.ctx, saveTime)
	defer cancel()
	st, ok := k.Sessions.Known(ctx, p.id) // usually: this process has just changed it
	if !ok || st.Last < m.Last {
		st, err = k.Sessions.Load(ctx, p.id)
	}
	if err != nil || st.Deleted {
		return
	}
	if due = m.Due(st); !due {
		return
	}
	k.mu.Lock()
	p.saved.quiet = origin.Waits(st)
	k.mu.Unlock()
	if _, err = k.save(ctx, st, m); err != nil && k.ctx.Err() == nil && !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, session.ErrDeleted) {
		k.Logger.Warn("cannot make a checkpoint of a workspace", "session", p.id, "error", err)
	}
	if errors.Is(err, sandbox.ErrTooBig) {
		k.note(p.id, session.Noted{ID: "STATUS$CHECKPOINTS_OFF", Message: "The workspace is too large for checkpoints, or the disk is nearly full: files cannot be restored to an earlier turn."})
	}
}

// save makes a checkpoint and records it if something changed. It returns its number.
func (k *Keeper) save(ctx context.Context, st session.State, m origin.Moment) (int, error) {
	h, err := k.handle(st)
	if err != nil {
		return 0, err
	}
	c, err := k.Driver.(sandbox.Checkpointer).Checkpoint(ctx, h.Handle)
	if err != nil || c.Number <= max(st.Checkpoint, 1) && c.Changed == 0 {
		return c.Number, err
	}
	var at origin.Place
	k.mu.Lock()
	if p := k.places[st.ID]; p != nil {
		at = origin.Place{Open: p.saved.open, Passed: p.saved.passed}
	}
	k.mu.Unlock()
	at.Looked = k.looked.Last(st.ID)
	e := m.Of(st, c, at)
	if m.Look && e.BetweenTurns { // a request that only reads appends no event, unless the end of a turn is not recorded yet
		return k.looked.Note(st.ID, c.Number), nil
	}
	e.Checkpoint, e.Files, e.Changed, e.LeftOut, e.Bytes = c.Number, c.Files, c.Changed, c.LeftOut, c.Bytes
	_, err = k.Sessions.Update(ctx, st.ID, func(s session.State) ([]session.Payload, error) { return s.Checkpointed(e) })
	return c.Number, err
}

// awaitCheckpoint waits for a checkpoint that is being made, for a while: what is done next must not be in it.
func (k *Keeper) awaitCheckpoint(ctx context.Context, p *place) error {
	k.mu.Lock()
	p.saved.used = true
	k.mu.Unlock()
	if p.saved.gate.WaitFor(ctx, maxSaveWait) != nil {
		k.mu.Lock()
		p.saved.passed = p.saved.gate.Busy()
		k.mu.Unlock()
	}
	return ctx.Err()
}

// checkpointBytes returns the size of the checkpoints of a workspace.
func (k *Keeper) checkpointBytes(ctx context.Context, id session.ID) int64 {
	d, ok := k.Driver.(sandbox.Checkpointer)
	if !ok || k.DiskPerUser <= 0 {
		return 0
	}
	c, _ := d.Checkpoints(ctx, sandbox.Handle{Driver: k.Name, ID: string(id)})
	return c.Bytes
}

// checkpoints finds the driver and the workspace of a session.
func (k *Keeper) checkpoints(ctx context.Context, id session.ID) (sandbox.Checkpointer, sandbox.Handle, error) {
	d, ok := k.Driver.(sandbox.Checkpointer)
	if !ok {
		return nil, sandbox.Handle{}, ErrNoCheckpoints
	}
	st, err := k.Sessions.Load(ctx, id)
	if err != nil {
		return nil, sandbox.Handle{}, err
	}
	h, err := k.handle(st)
	return d, h.Handle, err
}

// Checkpoints returns the checkpoints of a session's workspace, oldest first.
func (k *Keeper) Checkpoints(ctx context.Context, id session.ID) ([]int, error) {
	d, h, err := k.checkpoints(ctx, id)
	if err != nil {
		return nil, err
	}
	c, err := d.Checkpoints(ctx, h)
	return c.Numbers, orNone(err)
}

// orNone turns the driver's error for a workspace that does not exist into ErrNone.
func orNone(err error) error {
	if errors.Is(err, sandbox.ErrGone) {
		return ErrNone
	}
	return err
}

// Files names the files of a session's workspace: at a checkpoint, or now if it is 0.
type Files struct {
	ID         session.ID
	Checkpoint int
}

func (k *Keeper) filesAt(ctx context.Context, f Files) (sandbox.CheckpointOf, error) {
	_, h, err := k.checkpoints(ctx, f.ID)
	if err != nil {
		return sandbox.CheckpointOf{}, err
	}
	if f.Checkpoint == 0 {
		st, err := k.Sessions.Load(ctx, f.ID)
		if err == nil {
			f.Checkpoint, err = k.save(ctx, st, origin.Moment{Look: true})
		}
		if err != nil {
			return sandbox.CheckpointOf{}, orNone(err)
		}
	}
	return sandbox.CheckpointOf{Handle: h, Number: f.Checkpoint}, nil
}

// Compare lists the files that differ between two workspaces, or two states of one.
func (k *Keeper) Compare(ctx context.Context, a, b Files) ([]sandbox.FileChange, error) {
	from, err := k.filesAt(ctx, a)
	to, other := k.filesAt(ctx, b)
	if err := errors.Join(err, other); err != nil {
		return nil, err
	}
	return k.Driver.(sandbox.Checkpointer).Compare(ctx, from, to)
}

// FileAt reads a file of a workspace up to a number of bytes; found is false if there is none.
func (k *Keeper) FileAt(ctx context.Context, f Files, path string, most int64) (content []byte, found bool, err error) {
	at, err := k.filesAt(ctx, f)
	if err != nil {
		return nil, false, err
	}
	return k.Driver.(sandbox.Checkpointer).CheckpointFile(ctx, at, path, most)
}
