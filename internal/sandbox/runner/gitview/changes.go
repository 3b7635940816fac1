package gitview

import (
	"context"
	"io"
	"slices"
	"strings"

	"deckhand/internal/sandbox/runner/files"
)

// state is what became of a path: in the base, in the head, and in the
// workspace. Of the head is known what it has in common with one of the others.
type state struct {
	base, work bool
	conflict   bool
	// doubt says that it was changed twice, so it may be as it was; id and mode
	// are those of the base.
	doubt    bool
	id, mode string
}

// status is the letter for it, "" if nothing came of it.
func (s *state) status() string {
	switch {
	case s.conflict:
		return "U"
	case s.base && s.work:
		return "M"
	case s.base:
		return "D"
	case s.work:
		return "A"
	}
	return ""
}

// changes compares one repository with its base.
//
// git diff would do it in one step, but it writes to the index whatever it is
// told. So it is done in two that do not: from the workspace to the head, and
// from the head to the base.
func (v *View) changes(ctx context.Context, tree files.Tree, r repo) (map[string]*state, error) {
	states := map[string]*state{}
	var st status
	err := v.run(ctx, r, "", func(out io.Reader) (err error) {
		st, err = parseStatus(out, func(e entry) error { return note(states, e) })
		return err
	}, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames", "--no-ahead-behind", "--ignore-submodules=dirty")
	if err != nil {
		return nil, err
	}
	base, err := v.upstream(ctx, tree, r, st.branch)
	if err != nil {
		return nil, err
	}
	head := st.head
	if head == "" {
		if head, err = v.nothing(ctx, r); err != nil {
			return nil, err
		}
	}
	if base != head {
		err = v.run(ctx, r, "", func(out io.Reader) error {
			return parseSteps(out, func(s step) error { return combine(states, s) })
		}, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", base, head, "--")
		if err != nil {
			return nil, err
		}
	}
	return states, v.settle(ctx, tree, r, states)
}

// note takes a difference between the head and the workspace.
func note(states map[string]*state, e entry) error {
	s := states[e.path]
	if s == nil {
		if len(states) == maxChanges {
			return tooMany()
		}
		states[e.path] = &state{base: e.head != absent, work: e.work != absent, conflict: e.conflict, doubt: e.twice, id: e.id, mode: e.head}
		return nil
	}
	// Taken out of the index but still there: it is told of twice.
	s.base = s.base || e.head != absent
	s.work = s.work || e.work != absent
	s.doubt = true
	if e.head != absent && e.id != "" {
		s.id, s.mode = e.id, e.head
	}
	return nil
}

// combine adds a difference between the base and the head to what is known of
// the workspace.
func combine(states map[string]*state, d step) error {
	s := states[d.path]
	if s == nil {
		if len(states) == maxChanges {
			return tooMany()
		}
		states[d.path] = &state{base: d.old != absent, work: d.new != absent}
		return nil
	}
	s.base, s.doubt, s.id, s.mode = d.old != absent, true, d.id, d.old
	return nil
}

// maxDoubts bounds how many files are compared byte by byte.
const maxDoubts = 1000

// settle removes files that were changed and changed back. They are compared by
// what git would make of them now; if there is any doubt left they stay.
func (v *View) settle(ctx context.Context, tree files.Tree, r repo, states map[string]*state) error {
	var names []string
	size := 0
	for name, s := range states {
		if s.doubt && s.status() == "M" && same(tree, r.prefix+name, s.mode) && len(names) < maxDoubts && size < maxArgs {
			names = append(names, name)
			size += len(name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	out, err := v.text(ctx, r, "", 1<<20, append([]string{"hash-object", "--"}, names...)...)
	if err != nil && code(err) == 0 {
		return err // a file that has disappeared is no reason to give up
	}
	for i, id := range strings.Fields(string(out)) {
		if i < len(names) && id == states[names[i]].id {
			delete(states, names[i])
		}
	}
	return nil
}

// maxArgs bounds the names on one command line.
const maxArgs = 512 << 10

// same is true if a file still is of the kind that git calls mode.
func same(tree files.Tree, name, mode string) bool {
	f, err := tree.Stat([]byte(name))
	return err == nil && f.Mode.IsRegular() && (mode == "100644" && f.Mode&0o100 == 0 || mode == "100755" && f.Mode&0o100 != 0)
}
