package search

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"deckhand/internal/gitignore"
	"deckhand/internal/sandbox"
)

// found is a file that a walk came by.
type found struct {
	rel  string // below the place
	size int64
	time time.Time
}

// newest puts what was changed last first.
func newest(list []found) {
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(b.time.Compare(a.time), strings.Compare(a.rel, b.rel))
	})
}

// machinery are folders that hold no files but views of the system.
var machinery = []string{"/proc", "/sys", "/dev"}

// maxIgnore is how much of a .gitignore file is read.
const maxIgnore = 256 << 10

// walk looks at what is below a place.
type walk struct {
	*place
	private func(real string) bool
	ignored []ignore
	// keep is asked for each entry that git does not ignore.
	keep func(rel string, f sandbox.File) bool
	left int // how many entries may still be looked at
	list []found
}

// ignore is a .gitignore file.
type ignore struct {
	dir  string // where it lies, without links
	list *gitignore.List
}

// walk lists what keep wants below the place, or the place itself if it is a
// file. It is unfinished if there is too much to look at, or ctx ends.
func (s *Search) walk(ctx context.Context, p *place, keep func(string, sandbox.File) bool) (list []found, unfinished bool) {
	if !p.file.IsDir() {
		return []found{{size: p.file.Size, time: p.file.Time}}, false
	}
	w := &walk{place: p, private: s.isPrivate, keep: keep, left: s.limits.entries}
	w.above(s.workspace)
	finished := w.folder(ctx, "")
	newest(w.list)
	return w.list, !finished
}

// above reads the .gitignore files of the folders around the place, from the
// workspace on. Who asks for a folder that git ignores wants to see what is in it.
func (w *walk) above(workspace string) {
	if real, err := w.tree.Resolve([]byte(workspace)); err == nil {
		workspace = path.Join("/", real)
	}
	if !sandbox.Within(w.real, workspace) || w.real == workspace {
		return
	}
	for dir := path.Dir(w.real); sandbox.Within(dir, workspace); dir = path.Dir(dir) {
		if i, ok := w.readIgnore(dir); ok && !i.hides(w.real, true) {
			w.ignored = append(w.ignored, i)
		}
	}
}

func (w *walk) readIgnore(dir string) (ignore, bool) {
	f, _, err := w.tree.Open([]byte(path.Join(dir, ".gitignore")))
	if err != nil {
		return ignore{}, false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	return ignore{dir, gitignore.Parse(string(text))}, err == nil
}

// hides says whether a path below the folder is ignored.
func (i ignore) hides(real string, dir bool) bool {
	return i.list.Hides(strings.TrimPrefix(strings.TrimPrefix(real, i.dir), "/"), dir)
}

// folder looks at what is in a folder. It is false when the walk must end.
func (w *walk) folder(ctx context.Context, rel string) bool {
	real := path.Join(w.real, rel)
	entries, err := w.tree.List([]byte(real))
	if err != nil {
		return true // gone, not for us, or too full to be worth searching
	}
	around := len(w.ignored)
	defer func() { w.ignored = w.ignored[:around] }()
	if slices.ContainsFunc(entries, func(f sandbox.File) bool { return string(f.Name) == ".gitignore" }) {
		if i, ok := w.readIgnore(real); ok {
			w.ignored = append(w.ignored, i)
		}
	}
	for _, f := range entries {
		if w.left--; w.left < 0 || ctx.Err() != nil {
			return false
		}
		if !w.entry(ctx, path.Join(rel, string(f.Name)), f) {
			return false
		}
	}
	return true
}

func (w *walk) entry(ctx context.Context, rel string, f sandbox.File) bool {
	real := path.Join(w.real, rel)
	if string(f.Name) == ".git" || slices.ContainsFunc(w.ignored, func(i ignore) bool { return i.hides(real, f.IsDir()) }) {
		return true
	}
	if f.IsDir() && (w.private(real) || slices.Contains(machinery, real)) {
		return true
	}
	if w.keep(rel, f) {
		w.list = append(w.list, found{rel, f.Size, f.Time})
	}
	return !f.IsDir() || w.folder(ctx, rel)
}

// regular is true for files that have a text, and false for links and pipes.
func regular(f sandbox.File) bool { return f.Mode.IsRegular() }

// named is true for what an agent takes for a file: links are listed by their names.
func named(f sandbox.File) bool { return regular(f) || f.Mode.Type() == fs.ModeSymlink }
