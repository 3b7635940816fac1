package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/runner/files"
	"deckhand/internal/session"
	"deckhand/internal/workspace/viewfs"
)

// ErrNone says that the session has no workspace yet.
var ErrNone = errors.New("the workspace does not exist yet")

// View reads a workspace: through its sandbox if that runs, and otherwise on
// this machine, without starting it. Close it.
type View struct {
	box  *sandbox.Sandbox
	root *os.Root
	// near opens the folder beside the sandbox that runs, if it is on this machine.
	near    func(ctx context.Context) (*os.Root, error)
	inspect func(ctx context.Context) (*sandbox.Sandbox, error)
	close   func()
}

// View looks into a session's workspace. ErrNone before it was made;
// sandbox.ErrUnseen if it cannot be read while its sandbox does not run.
func (k *Keeper) View(ctx context.Context, id session.ID) (*View, error) {
	p, err := k.enter(id)
	if err != nil {
		return nil, err
	}
	v, err := k.look(ctx, p)
	if err != nil {
		k.leave(p)
		return nil, err
	}
	return v, nil
}

func (k *Keeper) look(ctx context.Context, p *place) (*View, error) {
	if box := k.alive(p); box != nil && !k.ends(p) { // it may be long until all is brought into it
		return k.through(p, box), nil
	}
	if err := p.lock(ctx); err != nil {
		return nil, err
	}
	defer p.unlock()
	if box := k.alive(p); box != nil {
		return k.through(p, box), nil
	}
	st, err := k.Sessions.Load(ctx, p.id)
	if err != nil {
		return nil, err
	}
	h, err := k.handle(st)
	if err != nil {
		return nil, err
	}
	root, err := k.root(ctx, h.Handle)
	if errors.Is(err, sandbox.ErrUnseen) { // it may run, left by a server before us
		if box := k.attach(ctx, p, st, h); box != nil {
			return k.through(p, box), nil
		}
	}
	if errors.Is(err, sandbox.ErrGone) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	return &View{root: root, close: func() { root.Close(); k.leave(p) }, inspect: func(ctx context.Context) (*sandbox.Sandbox, error) {
		i, ok := k.Driver.(sandbox.Inspector)
		if !ok {
			return nil, sandbox.ErrUnseen
		}
		return i.Inspect(ctx, h.Handle)
	}}, nil
}

func (k *Keeper) ends(p *place) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.ending
}

// through looks into a workspace whose sandbox runs.
func (k *Keeper) through(p *place, box *sandbox.Sandbox) *View {
	v := &View{box: box, close: func() { k.leave(p) }}
	if near, ok := k.Driver.(sandbox.LocalViewer); ok {
		k.mu.Lock()
		h := p.handle.Handle
		k.mu.Unlock()
		v.near = func(ctx context.Context) (*os.Root, error) { return near.View(ctx, h) }
	}
	return v
}

// attach connects to a sandbox that runs, nil if it does not. Called with the turn held.
func (k *Keeper) attach(ctx context.Context, p *place, st session.State, h stored) *sandbox.Sandbox {
	spec, err := k.Spec(ctx, st)
	if err != nil {
		return nil
	}
	var box *sandbox.Sandbox
	err = sandbox.Answers(ctx, k.Silence, func(ctx context.Context) (err error) {
		if box, err = k.Driver.Attach(ctx, h.Handle); err != nil {
			return err
		}
		if err = box.SetEnv(ctx, spec.Env); err != nil {
			box.Close()
		}
		return err
	})
	if errors.Is(err, sandbox.ErrSilent) {
		k.endSilent(p, h.Handle)
	}
	if err != nil {
		return nil
	}
	k.keep(p, box, h.Next(k.Driver, h.Handle, box.Info().Boot, k.Machine), st.Last, spec.Limits.OrDefault(), false)
	k.keepOpen(p, spec)
	return box
}

func (k *Keeper) root(ctx context.Context, h sandbox.Handle) (*os.Root, error) {
	viewer, ok := k.Driver.(sandbox.Viewer)
	if !ok {
		return nil, sandbox.ErrUnseen
	}
	return viewer.View(ctx, h)
}

// Close ends the look.
func (v *View) Close() { v.close() }

// Stat tells of a file.
func (v *View) Stat(ctx context.Context, path string) (sandbox.File, error) {
	if v.box != nil {
		return v.box.Stat(ctx, sandbox.InWorkspace(path))
	}
	return files.Stat(v.root, []byte(path))
}

// List tells what is in a folder.
func (v *View) List(ctx context.Context, path string) ([]sandbox.File, error) {
	if v.box != nil {
		return v.box.List(ctx, sandbox.InWorkspace(path))
	}
	return files.List(v.root, []byte(path))
}

// Read copies a file to w.
func (v *View) Read(ctx context.Context, path string, w io.Writer) (sandbox.File, error) {
	return v.ReadPart(ctx, sandbox.ReadParams{PathParams: sandbox.InWorkspace(path)}, w)
}

// ReadPart copies a part of a file to w.
func (v *View) ReadPart(ctx context.Context, p sandbox.ReadParams, w io.Writer) (sandbox.File, error) {
	if v.box != nil {
		return v.box.Read(ctx, p, w)
	}
	if err := ctx.Err(); err != nil {
		return sandbox.File{}, err
	}
	return files.Read(v.root, p, w)
}

// Archive packs the workspace into w.
func (v *View) Archive(ctx context.Context, format sandbox.Format, w io.Writer) error {
	p := sandbox.ArchiveParams{PathParams: sandbox.InWorkspace("."), Format: format}
	if v.box != nil {
		return v.box.Archive(ctx, p, w)
	}
	return files.Archive(ctx, v.root, p, w)
}

// Changes lists what was changed in the workspace's repositories.
func (v *View) Changes(ctx context.Context) ([]sandbox.GitChange, error) {
	box, done, err := v.programs(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return box.GitChanges(ctx)
}

// Diff compares a file with where the work began.
func (v *View) Diff(ctx context.Context, path string) (sandbox.GitDiff, error) {
	box, done, err := v.programs(ctx)
	if err != nil {
		return sandbox.GitDiff{}, err
	}
	defer done()
	return box.GitDiff(ctx, []byte(path))
}

// Review lists what changed in a range.
func (v *View) Review(ctx context.Context, in sandbox.GitRange) (sandbox.GitReview, error) {
	box, done, err := v.programs(ctx)
	if err != nil {
		return sandbox.GitReview{}, err
	}
	defer done()
	return box.GitReview(ctx, in)
}

// Compare is a file of a range before and after.
func (v *View) Compare(ctx context.Context, p sandbox.GitCompareParams) (sandbox.GitComparison, error) {
	box, done, err := v.programs(ctx)
	if err != nil {
		return sandbox.GitComparison{}, err
	}
	defer done()
	return box.GitCompare(ctx, p)
}

// Search calls find with a sandbox that can search the workspace.
func (v *View) Search(ctx context.Context, find func(*sandbox.Sandbox) error) error {
	box, done, err := v.programs(ctx)
	if err != nil {
		return err
	}
	defer done()
	return find(box)
}

// programs is a sandbox in which git can look at the workspace. It is never run
// on this machine itself: a repository can make git run what it likes.
func (v *View) programs(ctx context.Context) (*sandbox.Sandbox, func(), error) {
	if v.box != nil {
		return v.box, func() {}, nil
	}
	box, err := v.inspect(ctx)
	if err != nil {
		return nil, nil, err
	}
	return box, func() { box.Close() }, nil
}

// FS is the workspace as a file system, until ctx ends or the View is closed.
// Links are followed inside the workspace; one that leads out cannot be opened.
// Nothing is read before it is asked for, so opening a file to learn its size
// costs one question.
func (v *View) FS(ctx context.Context) fs.FS {
	if v.near != nil { // a dozen looks at a folder cost less than one question to its sandbox
		if root, err := v.near(ctx); err == nil {
			leave := v.close
			v.close = func() { root.Close(); leave() }
			v = &View{root: root}
		}
	}
	return viewfs.New(ctx, v)
}
