// Package plan decides which files of a workspace change when the changes of some spans of time are undone.
package plan

import (
	"maps"
	"path"
	"slices"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint/record"
)

// Plan is the state to which the changes of spans are undone.
type Plan struct {
	Target record.State
	// Files were changed by the spans, and by others during or after them; Repositories are folders whose git history was.
	Files, Repositories []string
	// Kept are in no checkpoint, and are in the place of Files that cannot be restored.
	Kept []string
}

// planner computes a Plan.
type planner struct {
	// visit goes to a checkpoint, and state is that of the last one.
	visit     VisitFunc
	read      ReadFunc
	state     record.State
	now       record.State
	overwrite bool
	// first has the paths that the spans changed, as they were before the first change.
	first map[string]*record.Entry
	// mine are those of them that others changed since.
	mine  map[string]bool
	units map[string]*unit
	// indexes are the sums of index files by the hashes of their contents.
	indexes map[[32]byte][32]byte
	layout  Layout
	Plan
}

// VisitFunc goes to a checkpoint, after those of earlier calls, and returns its state. old has the entries that the paths that may
// differ had before, nil for a path that did not exist. The state may be changed by the next call.
type VisitFunc func(n int) (st record.State, old map[string]*record.Entry, err error)

// ReadFunc returns the content of a file, truncated to most bytes.
type ReadFunc func(e *record.Entry, most int64) ([]byte, error)

// Undo plans to undo what changed in spans, oldest first. Everything else stays as it is now. Without overwrite, so does what
// others changed too.
func Undo(visit VisitFunc, read ReadFunc, now record.State, spans []sandbox.Span, overwrite bool) (Plan, error) {
	p := &planner{visit: visit, read: read, now: now, overwrite: overwrite, first: map[string]*record.Entry{}, mine: map[string]bool{}, units: map[string]*unit{},
		indexes: map[[32]byte][32]byte{}}
	p.layout.Add(now)
	for _, span := range spans {
		old, err := p.to(span.From)
		if err != nil {
			return p.Plan, err
		}
		p.between(old)
		if old, err = p.to(span.To); err != nil {
			return p.Plan, err
		}
		p.span(old, span.Mixed)
	}
	p.since()
	p.Target = maps.Clone(now)
	for name := range p.first {
		if git, of := p.layout.folder(name, p.first[name], now[name]); of == gitSettings || p.units[git] == nil {
			p.file(name)
		}
	}
	for git, u := range p.units {
		p.git(git, u)
	}
	p.parents()
	slices.Sort(p.Files)
	slices.Sort(p.Repositories)
	slices.Sort(p.Kept)
	p.Files, p.Kept = slices.Compact(p.Files), slices.Compact(p.Kept)
	return p.Plan, nil
}

// to goes to a checkpoint.
func (p *planner) to(n int) (old map[string]*record.Entry, err error) {
	if p.state, old, err = p.visit(n); old == nil {
		p.layout.Add(p.state)
	}
	for name := range old {
		p.layout.note(name, p.state)
	}
	return old, err
}

// span takes in what changed in a span. If it is mixed, others changed the same.
func (p *planner) span(old map[string]*record.Entry, mixed bool) {
	for name, was := range old {
		is := p.state[name]
		// What was left out before cannot be restored, and what is left out now has to be only if it replaces something.
		if !record.Differ(was, is) || record.LeftOut(name, old, p.state) != "" || !was.Stored() && record.LeftOut(name, nil, p.state) != "" {
			continue
		}
		if git, of := p.layout.folder(name, was, is); git != "" && of != gitSettings {
			u := p.units[git]
			if u == nil {
				u = &unit{base: p.below(git, old)}
				p.units[git] = u
			}
			u.agent = u.agent || p.historic(of, was, is)
			u.others = u.others || mixed && p.historic(of, was, is)
		}
		if _, ok := p.first[name]; !ok {
			p.first[name] = was
		}
		p.mine[name] = p.mine[name] || mixed
	}
}

// below returns the entries of a folder before the changes of a span.
func (p *planner) below(dir string, old map[string]*record.Entry) record.State {
	out := record.State{}
	for name, e := range p.state {
		if within(name, dir) {
			out[name] = e
		}
	}
	for name, e := range old {
		if !within(name, dir) {
			continue
		}
		if delete(out, name); e != nil {
			out[name] = e
		}
	}
	return out
}

// between takes in what changed between two spans.
func (p *planner) between(old map[string]*record.Entry) {
	for name, was := range old {
		p.other(name, was, p.state[name])
	}
}

// since takes in what changed after the last span.
func (p *planner) since() {
	for name := range p.first {
		p.other(name, p.state[name], p.now[name])
	}
	if len(p.units) == 0 {
		return
	}
	for name, is := range p.now {
		p.other(name, p.state[name], is)
	}
	for name, was := range p.state {
		p.other(name, was, p.now[name])
	}
}

// other takes in a change of a path that is not of a span.
func (p *planner) other(name string, was, is *record.Entry) {
	if !record.Differ(was, is) {
		return
	}
	_, changed := p.first[name]
	p.mine[name] = p.mine[name] || changed
	git, of := p.layout.in(name)
	if u := p.units[git]; u != nil {
		// A setting in a repository that the spans made must not be lost with it.
		made := of == gitSettings && u.made(git) && !(isFolder(was) && isFolder(is))
		u.others, u.agent = u.others || made || p.historic(of, was, is), u.agent || made
	}
}

// set changes the target.
func (p *planner) set(name string, e *record.Entry) {
	if !record.Differ(p.Target[name], e) || e != nil && !e.Stored() || p.blocked(name, e) {
		return
	}
	if e == nil {
		delete(p.Target, name)
		return
	}
	fresh := *e
	fresh.Ino = 0 // the restored file has another inode
	p.Target[name] = &fresh
}

// file plans an ordinary file.
func (p *planner) file(name string) {
	to, now := p.first[name], p.now[name]
	if !record.Differ(now, to) || p.blocked(name, to) {
		return
	}
	if p.mine[name] {
		if isFolder(to) && isFolder(now) {
			return
		}
		if p.Files = append(p.Files, name); !p.overwrite {
			return
		}
	}
	p.set(name, to)
}

// blocked reports whether an entry cannot be restored because something that is in no checkpoint, such as a large file, is in its
// place. That is listed, and stays: an undo of the restore could not bring it back.
func (p *planner) blocked(name string, to *record.Entry) bool {
	at := record.LeftOut(name, nil, p.now)
	if at != "" && to.Stored() {
		p.Files, p.Kept = append(p.Files, at), append(p.Kept, at)
	}
	return at != ""
}

// git plans a git folder.
func (p *planner) git(git string, u *unit) {
	if p.blocked(git, u.base[git]) {
		return
	}
	p.objects(git, u)
	if u.others && !u.agent {
		return
	}
	if u.others {
		name := git
		if path.Base(git) == ".git" {
			name = path.Dir(git)
		}
		if p.Repositories = append(p.Repositories, name); !p.overwrite {
			return
		}
	}
	// part reports whether a path is restored with the folder.
	part := func(name string) bool {
		in, of := p.layout.in(name)
		return in == git && of != gitSettings && of != gitObjects
	}
	for name := range p.now {
		in, _ := p.layout.in(name)
		if in == git && u.made(git) || u.others && u.base[name] == nil && part(name) {
			p.set(name, nil)
		}
	}
	if u.made(git) {
		return
	}
	for name, e := range u.base {
		if _, changed := p.first[name]; (changed || u.others) && part(name) {
			p.set(name, e)
		}
	}
	for name, e := range p.first {
		if e == nil && part(name) {
			p.set(name, nil)
		}
	}
}

// objects plans the objects of a git folder: those that the spans changed or removed are restored, new ones stay.
func (p *planner) objects(git string, u *unit) {
	restore := func(name string, e *record.Entry) {
		if in, of := p.layout.in(name); e != nil && in == git && of == gitObjects {
			p.set(name, e)
		}
	}
	for name, e := range u.base {
		if p.now[name] == nil {
			restore(name, e)
		}
	}
	for name, e := range p.first {
		restore(name, e)
	}
}

// made reports whether the spans made the repository.
func (u *unit) made(git string) bool { return git != "." && u.base[git] == nil }

// parents makes the target complete: what stays, and what is restored, has its folders.
func (p *planner) parents() {
	names := slices.Sorted(maps.Keys(p.Target)) // folders before their contents
	for _, name := range names {
		p.parent(name)
	}
}

// parent makes sure that the folder of a path is in the target, or drops the path. The folder's own folder is there.
func (p *planner) parent(name string) {
	dir := path.Dir(name)
	if dir == "." || p.Target[name] == nil {
		return
	}
	at := p.Target[dir]
	switch {
	case at != nil && at.Kind == record.Folder:
		return
	case at == nil && p.now[dir] != nil && p.now[dir].Kind == record.Folder: // others have put something into it
		p.Target[dir] = p.now[dir]
	case at == nil:
		p.Target[dir] = p.folderOf(dir, name)
	case at.Kind == record.Kept:
		delete(p.Target, name)
		return
	case p.now[dir] != nil && p.now[dir].Kind == record.Folder: // others have put something into a folder that becomes a file
		if p.Files = append(p.Files, name); p.overwrite {
			delete(p.Target, name)
			return
		}
		p.Target[dir] = p.now[dir]
	default: // others have put something in place of the folder
		if p.Files = append(p.Files, dir); !p.overwrite {
			delete(p.Target, name)
			return
		}
		p.Target[dir] = p.folderOf(dir, name)
	}
	p.parent(dir)
}

// folderOf returns an entry for the folder of a path.
func (p *planner) folderOf(dir, name string) *record.Entry {
	for _, e := range []*record.Entry{p.first[dir], p.state[dir]} {
		if e != nil && e.Kind == record.Folder {
			return e
		}
	}
	e := p.Target[name]
	return &record.Entry{Path: dir, Kind: record.Folder, Mode: 0o755, UID: e.UID, GID: e.GID}
}
