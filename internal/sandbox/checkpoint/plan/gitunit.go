package plan

import (
	"crypto/sha256"
	"path"
	"strings"

	"deckhand/internal/sandbox/checkpoint/gitindex"
	"deckhand/internal/sandbox/checkpoint/record"
)

// unit is a git folder: a .git folder, or another folder with the files of one, such as a bare repository. Restoring only some of
// its files would corrupt the repository, so it is restored as a whole or not at all.
type unit struct {
	// base has its entries at the start of the first span that changed it.
	base record.State
	// agent is true if the spans changed its history, others if the history changed after or between them.
	agent, others bool
}

// part is what a path in a git folder is for.
type part int

const (
	// gitState is restored with the folder: logs, …
	gitState part = iota
	// gitIndex is an index file. A change of its entries is one of the history.
	gitIndex
	// gitHistory is what commits, branches and tags there are, and what is checked out.
	gitHistory
	// gitObjects are never removed if they are new: a commit may need them.
	gitObjects
	// gitSettings are ordinary files of the user.
	gitSettings
)

// gitParts are the names in a git folder. Other names are gitState in a .git folder, and no part of any other git folder.
var gitParts = map[string]part{
	"lfs":    gitObjects,
	"config": gitSettings, "config.worktree": gitSettings, "hooks": gitSettings, "info": gitSettings, "description": gitSettings,
	"HEAD": gitHistory, "refs": gitHistory, "packed-refs": gitHistory, "reftable": gitHistory, "shallow": gitHistory,
	"rebase-merge": gitHistory, "rebase-apply": gitHistory, "sequencer": gitHistory,
	"FETCH_HEAD": gitState, "ORIG_HEAD": gitState, "COMMIT_EDITMSG": gitState, "index": gitIndex, "logs": gitState,
}

// Layout knows where the git folders of a workspace are.
type Layout struct {
	// roots are the folders with HEAD, objects and refs, "." for the workspace.
	roots map[string]bool
}

// Add finds the git folders of a state.
func (l *Layout) Add(st record.State) {
	for name := range st {
		if strings.HasSuffix(name, "HEAD") {
			l.note(name, st)
		}
	}
}

// note adds the folder of a path if it is a git folder.
func (l *Layout) note(name string, st record.State) {
	dir, base := path.Split(name)
	if base != "HEAD" && base != "objects" && base != "refs" {
		return
	}
	head, objects, refs := st[dir+"HEAD"], st[dir+"objects"], st[dir+"refs"]
	if head == nil || objects == nil || refs == nil || head.Kind == record.Folder || objects.Kind != record.Folder || refs.Kind != record.Folder {
		return
	}
	if l.roots == nil {
		l.roots = map[string]bool{}
	}
	l.roots[path.Clean(dir)] = true
}

// in returns the git folder that a path is or is in, "" if there is none, and what the path is for.
func (l *Layout) in(p string) (git string, of part) {
	if l.roots["."] {
		if of, known := l.part(".", p); known {
			return ".", of
		}
	}
	if len(l.roots) == 0 && !strings.Contains(p, ".git") {
		return "", gitState
	}
	for dir, rest := range prefixes(p) {
		dotGit := path.Base(dir) == ".git"
		if !dotGit && !l.roots[dir] {
			continue
		}
		if of, known := l.part(dir, rest); known || dotGit {
			return dir, of
		}
	}
	return "", gitState
}

// prefixes returns the folders that a path is in, outermost first, and the path itself, each with the rest of the path.
func prefixes(p string) func(yield func(dir, rest string) bool) {
	return func(yield func(dir, rest string) bool) {
		for i := range len(p) {
			if p[i] == '/' && !yield(p[:i], p[i+1:]) {
				return
			}
		}
		yield(p, "")
	}
}

// part returns what a path in a git folder is for. known is false if only a .git folder makes it a part of git.
func (l *Layout) part(git, p string) (of part, known bool) {
	name, below, _ := strings.Cut(p, "/")
	switch of, known = gitParts[name]; {
	case name == "worktrees": // a folder like this one for each worktree
		worktree, rest, _ := strings.Cut(below, "/")
		return l.part(path.Join(git, name, worktree), rest)
	case name == "modules": // and for each submodule, whose name may have slashes
		for dir, rest := range prefixes(below) {
			if at := path.Join(git, name, dir); l.roots[at] {
				return l.part(at, rest)
			}
		}
		return gitState, false
	case name == "objects":
		return objectPart(below), true
	case name == "logs":
		return gitState, below == "HEAD" || within(below, "refs")
	case name == "index" && below != "":
		return gitState, false
	case known && of == gitHistory && strings.HasSuffix(p, ".lock"):
		return gitState, true
	case known:
		return of, true
	case strings.HasSuffix(name, "_HEAD"), strings.HasPrefix(name, "BISECT_"):
		return gitHistory, true
	}
	return gitState, false
}

// objectPart returns what a path in the folder objects is for. Only objects and packs are objects: info has settings, such as
// the folders in which git looks for more objects.
func objectPart(p string) part {
	dir, name, _ := strings.Cut(p, "/")
	if p == "" || dir == "pack" || len(dir) == 2 && isHex(dir) && isHex(name) {
		return gitObjects
	}
	return gitSettings
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// folder is in for an entry before and after a change. A .git file, as worktrees have, is an ordinary file.
func (l *Layout) folder(p string, a, b *record.Entry) (git string, of part) {
	git, of = l.in(p)
	if git == p && (a == nil || a.Kind != record.Folder) && (b == nil || b.Kind != record.Folder) {
		return "", gitState
	}
	return git, of
}

// isHistory reports whether a change of an entry is a change of the history.
func isHistory(of part, a, b *record.Entry) bool {
	return of == gitHistory && !(isFolder(a) && isFolder(b))
}

// OfGit reports whether a path is in a .git folder.
func OfGit(p string) bool {
	git, _ := (&Layout{}).in(p)
	return git != ""
}

// Changes reports whether a change of an entry is in a git folder, and whether it is a change of the history.
func (l *Layout) Changes(p string, a, b *record.Entry) (git, history bool) {
	in, of := l.folder(p, a, b)
	return in != "", in != "" && isHistory(of, a, b)
}

// maxIndex is the maximum size of an index file whose entries are compared.
const maxIndex = 64 << 20

// historic is isHistory, and also true for a change of the entries of an index. Git also rewrites an index to refresh times.
func (p *planner) historic(of part, a, b *record.Entry) bool {
	if of != gitIndex {
		return isHistory(of, a, b)
	}
	one, ok := p.index(a)
	two, also := p.index(b)
	return !ok || !also || one != two
}

// index returns the sum of the entries of an index file, and reports whether it can be read. A missing file has no entries.
func (p *planner) index(e *record.Entry) (sum [sha256.Size]byte, ok bool) {
	if e == nil {
		return sha256.Sum256(nil), true
	}
	if e.Kind != record.File || e.Size > maxIndex {
		return sum, false
	}
	if sum, ok = p.indexes[e.Blob.Hash]; ok {
		return sum, true
	}
	b, err := p.read(e, maxIndex)
	x, ok := gitindex.Parse(b)
	if ok = ok && err == nil; ok {
		p.indexes[e.Blob.Hash] = x.Sum
	}
	return x.Sum, ok
}

// isFolder reports whether an entry is a folder or does not exist.
func isFolder(e *record.Entry) bool { return e == nil || e.Kind == record.Folder }

// within reports whether a path is a folder or in it.
func within(p, dir string) bool {
	return dir == "." || strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}
