package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace/counted"
)

// ErrAsleep says that a session's sandbox does not run, so nothing in it can be
// connected to.
var ErrAsleep = errors.New("the sandbox is not running")

// Ports lists the TCP ports that something in a session's sandbox listens on,
// none if it does not run.
func (k *Keeper) Ports(ctx context.Context, id session.ID) ([]int, error) {
	box, release, err := k.running(ctx, id)
	if errors.Is(err, ErrAsleep) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	found, err := box.Ports(ctx)
	if errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrLost) { // it has ended
		return nil, nil
	}
	return found, err
}

// Dial connects to a port that something in a session's sandbox listens on. It
// starts nothing: ErrAsleep if the sandbox does not run. The connection counts as
// a use of the sandbox until it is closed, and ends with the sandbox.
func (k *Keeper) Dial(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	box, release, err := k.running(ctx, id)
	if err != nil {
		return nil, err
	}
	conn, err := box.DialPort(ctx, port)
	if err != nil {
		release()
		return nil, err
	}
	return &counted.Conn{Conn: conn, Release: release}, nil
}

// Known are the sessions that have a workspace, whether or not it is in use.
func (k *Keeper) Known(ctx context.Context) ([]session.ID, error) {
	found, err := k.Driver.List(ctx)
	out := make([]session.ID, len(found))
	for i, f := range found {
		out[i] = session.ID(f.Handle.ID)
	}
	return out, err
}

// running is a session's sandbox if it runs, also when a server before us started
// it. Call release when done.
func (k *Keeper) running(ctx context.Context, id session.ID) (box *sandbox.Sandbox, release func(), err error) {
	p, err := k.enter(id)
	if err != nil {
		return nil, nil, err
	}
	if box, err = k.awake(ctx, p); err != nil {
		k.leave(p)
		return nil, nil, err
	}
	var once sync.Once
	return box, func() { once.Do(func() { k.leave(p) }) }, nil
}

func (k *Keeper) awake(ctx context.Context, p *place) (*sandbox.Sandbox, error) {
	if box := k.alive(p); box != nil && !k.ends(p) {
		return box, nil
	}
	if err := p.lock(ctx); err != nil {
		return nil, err
	}
	defer p.unlock()
	if box := k.alive(p); box != nil {
		return box, nil
	}
	st, err := k.Sessions.Load(ctx, p.id)
	if err != nil {
		return nil, err
	}
	if st.Deleted {
		return nil, session.ErrNotFound
	}
	h, err := k.handle(st)
	if err != nil {
		return nil, err
	}
	if box := k.attach(ctx, p, st, h); box != nil {
		return box, nil
	}
	if st.Up { // suspended: nothing listened then, nor does now
		return nil, fmt.Errorf("%w: nothing in the sandbox listens", fs.ErrNotExist)
	}
	return nil, ErrAsleep
}
