package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint/plan"
	"deckhand/internal/sandbox/checkpoint/record"
)

// Restored is the result of a restore.
type Restored struct {
	// Undo is a checkpoint of the state before.
	Undo Taken
	// Target is the checkpoint of the state after.
	Target int
	// Changed is the number of files, links and folders that were written or removed, without those in .git folders. Git is
	// true if the history of a git repository changed.
	Changed int
	Git     bool
	// Kept are files that could not be restored because an entry that checkpoints leave out is in their place.
	Kept []string
	// Files and Repositories were changed by the spans and by others. Nothing was restored if they are not empty and the caller
	// did not say what to do with them.
	Files, Repositories []string
}

// Restore makes a checkpoint of the current state, and then restores the workspace to a checkpoint or undoes what changed in spans.
// Files that no checkpoint has (see kept) are not touched. Nothing may run in the workspace until it returns.
//
// The first step writes a durable journal. If the process dies before that, the old state remains; after it,
// Finish completes the restore. If the note is not empty and something changed, Unrecorded returns it until Recorded is called.
func (s *Store) Restore(ctx context.Context, w Workspace, p sandbox.RestoreParams) (Restored, error) {
	var target record.State
	if p.Number > 0 {
		var err error
		if target, _, err = s.load(p.Number); err != nil {
			return Restored{}, err
		}
	}
	undo, now, err := s.take(ctx, w, time.Now(), true)
	if err != nil {
		return Restored{}, err
	}
	out := Restored{Undo: undo, Target: undo.Number}
	j := journal{Target: p.Number, Undo: undo.Number, Note: p.Note}
	if target == nil {
		h := history{s: s}
		planned, err := plan.Undo(h.visit, s.content, now, p.Spans, p.Own != sandbox.KeepOwn)
		if err != nil {
			return out, err
		}
		target, out.Files, out.Repositories, out.Kept = planned.Target, planned.Files, planned.Repositories, planned.Kept
		if p.Own == sandbox.RefuseOwn && len(out.Files)+len(out.Repositories) > 0 {
			return out, nil
		}
	}
	changes := diff(now, target)
	if len(changes) == 0 {
		return out, nil
	}
	s.step()
	if p.Number == 0 {
		j.Made = true
		if j.Target, err = s.compose(undo.Number, target, changes); err != nil {
			return out, err
		}
		s.step()
	}
	j.Changed, j.Git = count(changes, now, target)
	if err := s.writeJournal(j); err != nil {
		return out, err
	}
	s.step()
	kept, err := s.apply(w, changes)
	if out.Kept = append(out.Kept, kept...); err != nil {
		// A partial restore is of no use, so it is rolled back. If that fails too, Finish tries again.
		if back := s.converge(w, j.Undo, j.Target); back != nil {
			return out, errors.Join(err, back)
		}
		return out, errors.Join(err, s.rolledBack(j))
	}
	s.step()
	out.Target, out.Changed, out.Git = j.Target, j.Changed, j.Git
	if err := s.complete(j); err != nil {
		return out, err
	}
	s.step()
	return out, s.prune()
}

// count counts the changes between two states outside of git folders, and reports whether a git history changes.
func count(changes []change, from, to record.State) (files int, git bool) {
	var l plan.Layout
	l.Add(from)
	l.Add(to)
	for _, c := range changes {
		in, history := l.Changes(c.path(), c.from, c.to)
		if !in {
			files++
		}
		git = git || history
	}
	return files, git
}

// compose stores a state whose contents are in the store as a new checkpoint, after the newest one.
func (s *Store) compose(newest int, target record.State, changes []change) (int, error) {
	r := &record.Record{Number: newest + 1, Parent: newest, At: time.Now()}
	chain, blobs := s.cache.chain, s.cache.blobs
	if s.cache.number != newest || chain >= maxChain {
		r.Parent = 0
		for _, e := range target {
			r.Changed = append(r.Changed, e)
		}
	} else {
		for _, c := range changes {
			if c.to != nil {
				r.Changed = append(r.Changed, c.to)
			} else {
				r.Removed = append(r.Removed, c.path())
			}
		}
	}
	if err := s.replace(strconv.Itoa(r.Number)+".meta", r.Encode()); err != nil {
		return 0, err
	}
	if s.cache.number == newest {
		s.cache.set(r.Number, target, r.Parent, chain, blobs)
	}
	return r.Number, nil
}

// rolledBack ends the journal of a restore that was rolled back.
func (s *Store) rolledBack(j journal) error {
	if err := s.dropJournal(); err != nil || !j.Made {
		return err
	}
	s.cache.drop()
	return s.remove(strconv.Itoa(j.Target) + ".meta")
}

// Finish completes a restore that was interrupted. It does nothing if there is none.
func (s *Store) Finish(w Workspace) error {
	if !s.Pending() {
		return nil
	}
	j, err := s.readJournal(journalName)
	if err != nil {
		return fmt.Errorf("%w: the journal of a restore: %w", ErrCorrupt, err)
	}
	if err := s.converge(w, j.Target, j.Undo); err != nil {
		if back := s.converge(w, j.Undo, j.Target); back != nil {
			return errors.Join(err, back)
		}
		return s.rolledBack(j)
	}
	return s.complete(j)
}

// converge brings the workspace to the state of a checkpoint, from a possible mix of that state and another one.
func (s *Store) converge(w Workspace, n, other int) error {
	target, _, err := s.load(n)
	if err != nil {
		return err
	}
	also, _, err := s.load(other)
	if err != nil {
		return err
	}
	hash := func(f *os.File, size int64) (record.Blob, error) { return sum(f, size, io.Discard) }
	sc := &scanner{ctx: context.Background(), w: w, known: target, also: also, read: hash}
	if err := sc.scan(); err != nil {
		return err
	}
	_, err = s.apply(w, diff(sc.found, target, also))
	return err
}

// change is the change of one path by a restore: to is nil if the path is removed, from if it is new.
type change struct{ from, to *record.Entry }

func (c change) path() string {
	if c.to != nil {
		return c.to.Path
	}
	return c.from.Path
}

// diff returns the changes from one state to another, sorted by path. Entries that are kept in one of the states, or in one
// of the others, are not touched, nor is anything below them: an undo could not restore them.
func diff(from, to record.State, others ...record.State) []change {
	stays := map[string]bool{}
	for _, st := range append(others, from, to) {
		for p, e := range st {
			if e.Kind == record.Kept {
				stays[p] = true
			}
		}
	}
	var out []change
	add := func(p string, a, b *record.Entry) {
		for at := p; len(stays) > 0 && at != "."; at = path.Dir(at) {
			if stays[at] {
				return
			}
		}
		out = append(out, change{a, b})
	}
	for p, a := range from {
		if b := to[p]; b == nil || !a.Same(b) {
			add(p, a, b)
		}
	}
	for p, b := range to {
		if from[p] == nil {
			add(p, nil, b)
		}
	}
	slices.SortFunc(out, func(a, b change) int { return strings.Compare(a.path(), b.path()) })
	return out
}
