package files

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// watching is a watch by a client.
type watching struct {
	t       *testing.T
	changes chan sandbox.Change
	ended   chan error
	stop    context.CancelFunc
}

func (p *place) watch(s *sandbox.Sandbox, f *Files, params sandbox.PathParams) *watching {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Context())
	ready := make(chan struct{})
	f.watching = func() { close(ready) }
	w := &watching{p.T, make(chan sandbox.Change, 10_000), make(chan error, 1), cancel}
	go func() {
		w.ended <- s.Watch(ctx, params, func(c sandbox.Change) { w.changes <- c })
		close(w.changes)
	}()
	select {
	case <-ready:
	case err := <-w.ended:
		p.Fatal(err)
	}
	p.Cleanup(cancel)
	return w
}

// until waits for a change and returns what came before it.
func (w *watching) until(path, op string) string {
	w.t.Helper()
	var before []string
	for c := range w.changes {
		if string(c.Path) == path && c.Op == op {
			return strings.Join(before, "\n")
		}
		before = append(before, c.Op+" "+string(c.Path))
	}
	w.t.Fatalf("the watch ended with %v before %q was %s, after %q", <-w.ended, path, op, before)
	return ""
}

func TestWatch(t *testing.T) {
	p := newPlace(t)
	p.put("old/deep/file", "x")
	p.link("../other", "out")
	s, f := p.connect()
	w := p.watch(s, f, sandbox.PathParams{Within: true})

	p.put("new", "x")
	w.until("new", created)
	w.until("new", written)
	p.put("old/deep/file", "changed")
	w.until("old/deep/file", written)
	p.put("a/b/c/\xff\n", "x") // whether or not the folders were seen in time
	w.until("a", created)
	w.until("a/b/c/\xff\n", created)
	p.put("a/b/c/again", "x")
	w.until("a/b/c/again", created)

	p.ok(os.Rename(filepath.Join(p.dir, "a"), filepath.Join(p.dir, "moved")))
	w.until("a", removed)
	w.until("moved", created)
	p.put("moved/b/c/third", "x")
	if before := w.until("moved/b/c/third", created); strings.Contains(before, " a/") {
		t.Errorf("a folder that was moved is told under its old name: %s", before)
	}
	p.ok(os.RemoveAll(filepath.Join(p.dir, "moved")))
	w.until("moved", removed)

	// Written by the runner: its temporary file is not reported.
	if _, err := s.Write(t.Context(), sandbox.WriteParams{PathParams: sandbox.InWorkspace("up")}, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if before := w.until("up", created); strings.Contains(before, tmpPrefix) {
		t.Errorf("told of %s", before)
	}
	// Through the link nothing is seen.
	p.ok(os.WriteFile(filepath.Join(p.outer, "other", "unseen"), nil, 0o644))
	p.put("last", "x")
	if before := w.until("last", created); strings.Contains(before, "unseen") {
		t.Errorf("told of %s", before)
	}
	w.stop()
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWatchEndsWithItsFolder(t *testing.T) {
	p := newPlace(t)
	p.put("dir/sub/file", "x")
	s, f := p.connect()
	w := p.watch(s, f, sandbox.PathParams{Path: []byte("dir")}) // absolute, since it may be anywhere
	p.put("dir/sub/new", "x")
	w.until("/workspace/dir/sub/new", created)
	p.ok(os.RemoveAll(filepath.Join(p.dir, "dir")))
	w.until("/workspace/dir", removed)
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
}

func TestWatchRefuses(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	s, f := p.connect()
	for path, want := range map[string]error{"nothing": fs.ErrNotExist, "folder-out": rpc.ErrEscapes, "file": fs.ErrNotExist, "pipe": fs.ErrNotExist} {
		if err := s.Watch(t.Context(), sandbox.InWorkspace(path), nil); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	var all []*watching
	for range maxWatches {
		all = append(all, p.watch(s, f, sandbox.PathParams{Within: true}))
	}
	if err := s.Watch(t.Context(), sandbox.PathParams{Within: true}, nil); !errors.Is(err, rpc.ErrBusy) {
		t.Errorf("got %v", err)
	}
	for _, w := range all {
		w.stop()
		<-w.ended
	}
}

// More folders than are followed, and a queue that ran over, are told.
func TestWatchOverflow(t *testing.T) {
	p := newPlace(t)
	p.put("a/file", "x")
	var b bytes.Buffer
	w, err := newWatcher(At(p.root, "/workspace"), ".", &b)
	p.ok(err)
	defer w.f.Close()
	if len(w.paths) != 2 {
		t.Fatalf("follows %v", w.paths)
	}
	for i := range int32(maxWatched) { // as if there were many
		w.paths[1000+i] = "many"
	}
	p.ok(w.follow("a", false))
	p.ok(w.follow("a", false))
	p.ok(w.flush())
	if got := strings.Count(b.String(), overflow); got != 1 {
		t.Errorf("told %d times: %s", got, b.String())
	}
	b.Reset()
	event := make([]byte, 16)
	event[5] = 0x40 // IN_Q_OVERFLOW
	p.put("b/file", "x")
	if _, err := w.events(event); err != nil {
		t.Fatal(err)
	}
	p.ok(w.flush())
	if !strings.Contains(b.String(), overflow) || len(w.paths) != 3 {
		t.Errorf("told %s, follows %v", b.String(), w.paths)
	}
}
