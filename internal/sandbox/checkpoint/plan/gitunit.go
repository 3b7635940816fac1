package plan

import (
	"slices"
	"strings"

	"deckhand/internal/sandbox/checkpoint/record"
)

// unit is a .git folder. Restoring only some of its files would corrupt the repository, so it is restored as a whole or not at all.
type unit struct {
	// base has its entries at the start of the first span that changed it.
	base record.State
	// agent is true if the spans changed its history, others if the history changed after or between them.
	agent, others bool
}

// part is what a path in a .git folder is for.
type part int

const (
	// gitState is restored with the folder: the index, logs, …
	gitState part = iota
	// gitHistory is what commits, branches and tags there are, and what is checked out.
	gitHistory
	// gitObjects are only added, never removed: a commit may need them.
	gitObjects
	// gitSettings are ordinary files of the user.
	gitSettings
)

// gitParts are the names in a .git folder that are not gitState.
var gitParts = map[string]part{
	"objects": gitObjects, "lfs": gitObjects,
	"config": gitSettings, "config.worktree": gitSettings, "hooks": gitSettings, "info": gitSettings, "description": gitSettings,
	"HEAD": gitHistory, "refs": gitHistory, "packed-refs": gitHistory, "reftable": gitHistory, "shallow": gitHistory,
	"rebase-merge": gitHistory, "rebase-apply": gitHistory, "sequencer": gitHistory,
	"FETCH_HEAD": gitState, "ORIG_HEAD": gitState, "index": gitState, "logs": gitState,
}

// inGit returns the .git folder that a path is or is in, "" if there is none, and what the path is for.
func inGit(p string) (git string, of part) {
	if !strings.Contains(p, ".git") {
		return "", gitState
	}
	names := strings.Split(p, "/")
	at := slices.Index(names, ".git")
	if at < 0 {
		return "", gitState
	}
	git, names = strings.Join(names[:at+1], "/"), names[at+1:]
	// modules and worktrees have a folder like this one for each submodule and worktree.
	nested := len(names) > 0 && (names[0] == "modules" || names[0] == "worktrees")
	for _, name := range names {
		of, known := gitParts[name]
		switch {
		case known && of == gitHistory && strings.HasSuffix(p, ".lock"):
			return git, gitState
		case known:
			return git, of
		case strings.HasSuffix(name, "_HEAD"), strings.HasPrefix(name, "BISECT_"):
			return git, gitHistory
		case !nested:
			return git, gitState
		}
	}
	return git, gitState
}

// gitFolder is inGit for an entry before and after a change. A .git file, as worktrees have, is an ordinary file.
func gitFolder(p string, a, b *record.Entry) (git string, of part) {
	git, of = inGit(p)
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
	git, _ := inGit(p)
	return git != ""
}

// ChangesGit reports whether a change of an entry is in a .git folder, and whether it is a change of the history.
func ChangesGit(p string, a, b *record.Entry) (git, history bool) {
	in, of := gitFolder(p, a, b)
	return in != "", in != "" && isHistory(of, a, b)
}

// isFolder reports whether an entry is a folder or does not exist.
func isFolder(e *record.Entry) bool { return e == nil || e.Kind == record.Folder }

// within reports whether a path is a folder or in it.
func within(p, dir string) bool {
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}
