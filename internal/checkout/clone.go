package checkout

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// temporary is the prefix of the folders in which clones are made.
const temporary = ".deckhand-clone-"

// anew is the note about a clone that replaces a lost one.
const anew = "The repository was missing and was cloned again. Changes that were not pushed are lost."

// clone makes the clone in a temporary folder and moves it to its place when it is
// complete.
func (w *work) clone(ctx context.Context) (*session.CheckedOut, error) {
	if err := w.checkRequest(); err != nil {
		return nil, err
	}
	w.tell(sandbox.Progress{Step: sandbox.Cloning, Message: "Cloning " + w.want.Repository})
	if err := w.sweep(ctx); err != nil {
		return nil, err
	}
	dir := temporary + word(8)
	if w.src.Folder == "." { // the workspace itself cannot be replaced
		dir = "."
	}
	done, err := w.fill(ctx, dir)
	if err != nil {
		return nil, w.undo(ctx, dir, err)
	}
	if dir == "." {
		return done, nil
	}
	r, err := w.sh(ctx, `rmdir "$2" 2>/dev/null; test ! -e "$2" && mv "$1" "$2"`, nil, dir, w.src.Folder)
	if err == nil && r.Exit != 0 {
		err = w.no(cloneFailed, "it could not be moved to its place in the workspace: "+last(string(r.Stderr)))
	}
	if err != nil {
		return nil, w.undo(ctx, dir, err)
	}
	return done, nil
}

// fill clones into the folder; the marker is written last.
func (w *work) fill(ctx context.Context, dir string) (*session.CheckedOut, error) {
	if err := w.fetch(ctx, dir); err != nil {
		return nil, err
	}
	done := &session.CheckedOut{Repository: w.want.Repository, Provider: w.want.Provider, Folder: w.src.Folder}
	if err := w.branch(ctx, dir, done); err != nil {
		return nil, err
	}
	if err := w.files(ctx, dir, done); err != nil {
		return nil, err
	}
	var err error
	if done.Dir, err = w.line(ctx, dir, "rev-parse", "--show-toplevel"); err != nil {
		return nil, err
	}
	if dir != "." {
		done.Dir = path.Join(path.Dir(done.Dir), w.src.Folder)
	}
	if done.Notes, err = w.extras(ctx, dir); err != nil {
		return nil, err
	}
	if w.before != nil {
		done.Notes = append([]string{anew}, done.Notes...)
	}
	has, err := w.has(ctx, path.Join(dir, setUpScript))
	if err != nil {
		return nil, err
	}
	if has {
		done.Script = setUpScript
	}
	if has, err = w.has(ctx, path.Join(dir, commitScript)); err != nil {
		return nil, err
	}
	if has {
		done.Hook = commitScript
	}
	if err := w.sign(ctx, dir); err != nil {
		return nil, err
	}
	text, err := json.Marshal(done)
	if err != nil {
		return nil, err
	}
	_, err = w.box.Write(ctx, sandbox.WriteParams{PathParams: sandbox.InWorkspace(path.Join(dir, marker))}, bytes.NewReader(text))
	return done, w.refused(err)
}

// fetch clones without checking out files: without their contents if the server supports
// that, else in full.
func (w *work) fetch(ctx context.Context, dir string) error {
	args := []string{"clone", "--quiet", "--no-checkout", "--template=", "--origin=origin"}
	from := []string{"--", w.src.URL, dir}
	r, err := w.git(ctx, ".", slices.Concat(args, []string{"--filter=blob:none"}, from)...)
	if err == nil && r.Exit != 0 && strings.Contains(string(r.Stderr), "filter") {
		r, err = w.git(ctx, ".", slices.Concat(args, from)...) // git has removed the partial clone
	}
	if err == nil && r.Exit != 0 {
		err = w.explain(r)
	}
	return err
}

// branch checks out the requested branch, or creates one for this work. A branch that was
// created and pushed before is used again.
func (w *work) branch(ctx context.Context, dir string, done *session.CheckedOut) error {
	args := []string{"switch", "--quiet"}
	switch {
	case w.want.Branch != "":
		done.Branch = w.want.Branch
	case w.before != nil && w.before.Fresh:
		done.Branch, done.Fresh = w.before.Branch, true
	default:
		done.Branch, done.Fresh = "deckhand-"+word(8), true
	}
	there, err := w.line(ctx, dir, "rev-parse", "--verify", "--quiet", "refs/remotes/origin/"+done.Branch)
	switch {
	case err != nil:
		return err
	case there == "" && !done.Fresh:
		return &sandbox.Unavailable{ID: branchMissing, Reason: "The repository " + w.want.Repository + " has no branch " + done.Branch + "."}
	case there == "":
		args = append(args, "--create")
	}
	r, err := w.git(ctx, dir, append(args, done.Branch)...)
	if err == nil && r.Exit != 0 {
		err = w.explain(r)
	}
	return err
}

// files checks out the files of the commit. A new branch after a clone without files has
// none.
func (w *work) files(ctx context.Context, dir string, done *session.CheckedOut) error {
	var err error
	if done.Commit, err = w.line(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
		return err
	}
	if done.Commit == "" {
		return w.checkEmpty(ctx)
	}
	r, err := w.git(ctx, dir, "reset", "--quiet", "--hard")
	if err == nil && r.Exit != 0 {
		err = w.explain(r)
	}
	return err
}

// checkEmpty makes sure that an empty repository really is one: git also interprets a
// one-line web page as an empty list of refs.
func (w *work) checkEmpty(ctx context.Context) error {
	env := maps.Clone(w.environment())
	env["GIT_TRACE_PACKET"] = "1" // only a git server sends packets
	r, err := w.box.Run(ctx, sandbox.Process{Args: slices.Concat(flags, []string{"ls-remote", "--", w.src.URL}), Env: env, Own: true, Limit: maxSaid}, nil)
	if err == nil && !bytes.Contains(r.Stderr, []byte(" packet: ")) {
		return w.no(cloneFailed, "there is no git repository at this URL")
	}
	return w.refused(err)
}

// sweep removes the folders of incomplete clones.
func (w *work) sweep(ctx context.Context) error {
	found, err := w.box.List(ctx, sandbox.InWorkspace("."))
	if err != nil {
		return w.refused(err)
	}
	for _, f := range found {
		if strings.HasPrefix(string(f.Name), temporary) {
			if err := w.box.Remove(ctx, sandbox.InWorkspace(string(f.Name))); err != nil {
				return w.refused(err)
			}
		}
	}
	return nil
}

// undo restores the workspace after a failed clone.
func (w *work) undo(ctx context.Context, dir string, cause error) error {
	_ = w.empty(context.WithoutCancel(ctx), dir) // otherwise the next clone removes it
	return cause
}

// empty removes a clone. For the workspace itself, only its contents are removed.
func (w *work) empty(ctx context.Context, dir string) error {
	if dir != "." {
		return w.box.Remove(ctx, sandbox.InWorkspace(dir))
	}
	found, err := w.box.List(ctx, sandbox.InWorkspace("."))
	for _, f := range found {
		if err == nil {
			err = w.box.Remove(ctx, sandbox.InWorkspace(string(f.Name)))
		}
	}
	return err
}
