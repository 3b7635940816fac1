// Package edit is the editor of the model: it views text files and changes them in small
// steps that can be undone.
//
// Mistakes of the model are results that it can learn from, not errors. A change with an
// ID is made once, also if it is requested again after the connection or the runner died.
package edit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/edit/text"
	"deckhand/internal/sandbox/runner/files"
	"deckhand/internal/sandbox/runner/results"
)

const (
	// maxFile is the largest file that is viewed or changed.
	maxFile = 10 << 20
	// maxShown is how many characters the model is shown at once.
	maxShown = 16_000
	// maxKept is the size up to which a result holds the whole file.
	maxKept = 1 << 20
	// around is how many lines are shown before and after a change.
	around = 4
)

// Config says what an Editor needs.
type Config struct {
	Results *results.Store
	// Dir is a private folder, for what undo needs. It survives the runner.
	Dir string
	// Workspace is the folder that relative paths are likely to mean.
	Workspace string
	// Private lists further folders that the model must not access through the editor: the
	// runner has more rights than the programs it starts.
	Private []string
}

// Editor views and changes text files.
type Editor struct {
	config  Config
	private []string
	history *history

	mu    sync.Mutex
	paths map[string]*lock
}

// lock makes edits of one path wait for each other.
type lock struct {
	sync.Mutex
	users int
}

// New makes an Editor.
func New(c Config) *Editor {
	e := &Editor{config: c, history: &history{dir: c.Dir}, paths: map[string]*lock{}}
	if c.Workspace == "" {
		e.config.Workspace = sandbox.Workspace
	}
	for _, dir := range append([]string{c.Dir}, c.Private...) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		e.private = append(e.private, path.Clean(dir))
	}
	return e
}

// Handlers are the operations.
func (e *Editor) Handlers() map[string]rpc.Handler {
	return map[string]rpc.Handler{"edit": func(ctx context.Context, c *rpc.Call) (any, error) {
		var p sandbox.EditParams
		if err := c.Into(&p); err != nil {
			return nil, err
		}
		return e.Edit(ctx, p)
	}}
}

// Edit does what is asked for, or gives the result of the first time.
func (e *Editor) Edit(ctx context.Context, p sandbox.EditParams) (sandbox.EditResult, error) {
	var r sandbox.EditResult
	if p.ID == "" {
		return e.do(ctx, p), nil
	}
	state, known, done, err := e.config.Results.Begin(p.ID, p.Again)
	if err != nil {
		return r, err
	}
	switch state {
	case results.Lost:
		return lost, nil
	case results.Running:
		select {
		case <-done:
		case <-ctx.Done():
			return r, ctx.Err()
		}
		if known, err = e.config.Results.Result(p.ID); errors.Is(err, fs.ErrNotExist) {
			return lost, nil // its result could not be kept
		} else if err != nil {
			return r, err
		}
	case results.New:
		// The caller may go away, but the edit is completed.
		r = e.do(context.WithoutCancel(ctx), p)
		// The edit is done. If that cannot be remembered, this answer is all there is.
		_ = e.config.Results.Finish(p.ID, r)
		return r, nil
	}
	return r, json.Unmarshal(known, &r)
}

var lost = sandbox.EditResult{
	Text:   "ERROR: The sandbox was restarted while this edit was made. It may have been made or not: view the file before you go on.",
	Failed: true,
	Lost:   true,
}

// mistake is an error that the caller can correct.
type mistake string

func (m mistake) Error() string { return string(m) }

func mistakef(format string, args ...any) error { return mistake(fmt.Sprintf(format, args...)) }

// do does one edit. It always has a result, also if it panics, because the caller waits for it.
func (e *Editor) do(ctx context.Context, p sandbox.EditParams) (r sandbox.EditResult) {
	defer func() {
		if v := recover(); v != nil {
			r = sandbox.EditResult{Text: fmt.Sprintf("ERROR: The editor failed: %v. View the file before you go on.", v), Failed: true}
		}
	}()
	r, err := e.command(ctx, p)
	if err != nil {
		return sandbox.EditResult{Text: "ERROR: " + err.Error(), Failed: true}
	}
	return r
}

func (e *Editor) command(ctx context.Context, p sandbox.EditParams) (sandbox.EditResult, error) {
	do := map[string]func(context.Context, *target, sandbox.EditParams) (sandbox.EditResult, error){
		"view": e.view, "create": e.create, "str_replace": e.replace, "insert": e.insert, "undo_edit": e.undo,
	}[p.Command]
	if do == nil {
		return sandbox.EditResult{}, mistakef("There is no command %q. The commands are view, create, str_replace, insert and undo_edit.", p.Command)
	}
	if p.Shrink && p.Command != "view" {
		return sandbox.EditResult{}, mistake(sandbox.Full)
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		return sandbox.EditResult{}, err
	}
	defer root.Close()
	t, err := e.target(files.At(root, "/"), p.Path)
	if err != nil {
		return sandbox.EditResult{}, err
	}
	if p.Command != "view" {
		if err := e.direct(t); err != nil {
			return sandbox.EditResult{}, err
		}
		defer e.hold(t.real)()
	}
	return do(ctx, t, p)
}

// direct refuses to change a file through a link: users approve and allow changes by the path that they see. The workspace
// itself may be behind one.
func (e *Editor) direct(t *target) error {
	asked := path.Clean(t.path)
	if rest, ok := strings.CutPrefix(asked, e.config.Workspace+"/"); ok {
		if real, err := filepath.EvalSymlinks(e.config.Workspace); err == nil {
			asked = path.Join(real, rest)
		}
	}
	if t.real == asked {
		return nil
	}
	return mistakef("%s is behind a link and means %s. To change that file, use its own path.", t.path, t.real)
}

// hold waits until no other edit of the file is in progress.
func (e *Editor) hold(real string) (release func()) {
	e.mu.Lock()
	l := e.paths[real]
	if l == nil {
		l = &lock{}
		e.paths[real] = l
	}
	l.users++
	e.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		e.mu.Lock()
		defer e.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(e.paths, real)
		}
	}
}

// target is the file that an edit is about.
type target struct {
	tree files.Tree // an exact one: where the path leads was checked
	path string     // as it was asked for
	real string     // without links
}

func (e *Editor) target(tree files.Tree, p string) (*target, error) {
	switch {
	case p == "":
		return nil, mistake("The parameter path is missing. Give the absolute path of a file or folder.")
	case strings.ContainsRune(p, 0):
		return nil, mistake("A path cannot contain a NUL character.")
	case !strings.HasPrefix(p, "/"):
		return nil, mistakef("The path %s is not absolute, it should start with /. Maybe you meant %s?", p, path.Join(e.config.Workspace, p))
	}
	real, err := tree.Resolve([]byte(p))
	if err != nil {
		return nil, explain(p, err)
	}
	real = path.Join("/", real)
	for _, dir := range e.private {
		if real == dir || strings.HasPrefix(real, dir+"/") {
			return nil, mistakef("%s belongs to the sandbox itself and cannot be viewed or changed.", p)
		}
	}
	return &target{tree.Exact(), p, real}, nil
}

// explain returns a message about a failure for the caller.
func explain(p string, err error) error {
	var m mistake
	switch {
	case errors.As(err, &m):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return mistakef("The path %s does not exist. View its folder to see what is there.", p)
	case errors.Is(err, fs.ErrPermission):
		return mistakef("There is no permission to use %s.", p)
	}
	return mistakef("%s cannot be used: %v.", p, err)
}

// document is a text file as it is.
type document struct {
	lines
	encoding text.Encoding
	bytes    []byte
}

// read reads a text file.
func (t *target) read() (*document, error) {
	info, err := t.tree.Stat([]byte(t.real))
	switch {
	case err != nil:
		return nil, explain(t.path, err)
	case info.IsDir():
		return nil, mistakef("The path %s is a folder, and only view works on folders.", t.path)
	case !info.Mode.IsRegular():
		return nil, mistakef("%s is not a regular file: it cannot be viewed or changed here.", t.path)
	case info.Size > maxFile:
		return nil, tooLarge(t.path, info.Size)
	}
	f, _, err := t.tree.Open([]byte(t.real))
	if err != nil {
		return nil, explain(t.path, err)
	}
	defer f.Close()
	b := bytes.NewBuffer(make([]byte, 0, info.Size+512))
	if _, err := b.ReadFrom(io.LimitReader(f, maxFile+1)); err != nil { // it may be longer by now, or of a kind that does not know its size
		return nil, explain(t.path, err)
	}
	if b.Len() > maxFile {
		return nil, tooLarge(t.path, int64(b.Len()))
	}
	return t.decode(b.Bytes())
}

func (t *target) decode(b []byte) (*document, error) {
	s, encoding, err := text.Decode(b)
	if err != nil {
		return nil, mistakef("%s is a binary file, not a text. Use a command that understands its format.", t.path)
	}
	return &document{cut(s), encoding, b}, nil
}

func tooLarge(p string, size int64) error {
	return mistakef("%s is too large for the editor: %.1f MB of at most %d MB. Use a command to work on it, such as grep, head or sed.", p, float64(size)/(1<<20), maxFile>>20)
}

// write replaces the file in one go.
func (t *target) write(ctx context.Context, b []byte, fresh bool) error {
	if len(b) > maxFile {
		return mistakef("The file would be too large for the editor: %.1f MB of at most %d MB.", float64(len(b))/(1<<20), maxFile>>20)
	}
	_, err := t.tree.Write(ctx, sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte(t.real)}, New: fresh}, bytes.NewReader(b))
	if errors.Is(err, fs.ErrExist) {
		return exists(t.path)
	}
	if err != nil {
		return explain(t.path, err)
	}
	return nil
}

func exists(p string) error {
	return mistakef("There is a file at %s already. The command create does not replace files: use str_replace or insert to change it, or another path.", p)
}
