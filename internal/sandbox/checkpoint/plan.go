package checkpoint

import (
	"maps"
	"path"
	"slices"

	"deckhand/internal/sandbox"
)

// plan is the state to which the changes of spans are undone.
type plan struct {
	target state
	// files were changed by the spans, and by others during or after them; repositories are folders whose git history was.
	files, repositories []string
}

// planner computes a plan.
type planner struct {
	history
	now       state
	overwrite bool
	// first has the paths that the spans changed, as they were before the first change.
	first map[string]*entry
	// mine are those of them that others changed since.
	mine  map[string]bool
	units map[string]*unit
	plan
}

// undo plans to undo what changed in spans, oldest first. Everything else stays as it is now. Without overwrite, so does what
// others changed too.
func (s *Store) undo(now state, spans []sandbox.Span, overwrite bool) (plan, error) {
	p := &planner{history: history{s: s}, now: now, overwrite: overwrite, first: map[string]*entry{}, mine: map[string]bool{}, units: map[string]*unit{}}
	for _, span := range spans {
		old, err := p.to(span.From)
		if err != nil {
			return p.plan, err
		}
		p.between(old)
		if old, err = p.to(span.To); err != nil {
			return p.plan, err
		}
		p.span(old)
	}
	p.since()
	p.target = maps.Clone(now)
	for name := range p.first {
		if git, of := gitFolder(name, p.first[name], now[name]); git == "" || of == gitSettings {
			p.file(name)
		}
	}
	for git, u := range p.units {
		p.git(git, u)
	}
	p.parents()
	slices.Sort(p.files)
	slices.Sort(p.repositories)
	p.files = slices.Compact(p.files)
	return p.plan, nil
}

// span takes in what changed in a span.
func (p *planner) span(old map[string]*entry) {
	for name, was := range old {
		is := p.state[name]
		if !differ(was, is) || leftOut(name, old, p.state) {
			continue
		}
		if git, of := gitFolder(name, was, is); git != "" && of != gitSettings {
			u := p.units[git]
			if u == nil {
				u = &unit{base: p.below(git, old)}
				p.units[git] = u
			}
			u.agent = u.agent || isHistory(of, was, is)
		}
		if _, ok := p.first[name]; !ok {
			p.first[name] = was
		}
	}
}

// below returns the entries of a folder before the changes of a span.
func (p *planner) below(dir string, old map[string]*entry) state {
	out := state{}
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
func (p *planner) between(old map[string]*entry) {
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
func (p *planner) other(name string, was, is *entry) {
	if !differ(was, is) {
		return
	}
	before, changed := p.first[name]
	p.mine[name] = p.mine[name] || changed
	git, of := inGit(name)
	if u := p.units[git]; u != nil {
		// A setting in a repository that the spans made must not be lost with it.
		made := changed && before == nil && of == gitSettings && u.base[git] == nil
		u.others, u.agent = u.others || isHistory(of, was, is) || made, u.agent || made
	}
}

// set changes the target.
func (p *planner) set(name string, e *entry) {
	if !differ(p.target[name], e) {
		return
	}
	if e == nil {
		delete(p.target, name)
		return
	}
	fresh := *e
	fresh.ino = 0 // the restored file has another inode
	p.target[name] = &fresh
}

// file plans an ordinary file.
func (p *planner) file(name string) {
	to, now := p.first[name], p.now[name]
	if !differ(now, to) || leftOut(name, nil, p.now) {
		return
	}
	if p.mine[name] {
		if isFolder(to) && isFolder(now) {
			return
		}
		if p.files = append(p.files, name); !p.overwrite {
			return
		}
	}
	p.set(name, to)
}

// git plans a .git folder.
func (p *planner) git(git string, u *unit) {
	if leftOut(git, nil, p.now) || u.others && !u.agent {
		return
	}
	if u.others {
		if p.repositories = append(p.repositories, path.Dir(git)); !p.overwrite {
			return
		}
	}
	if u.base[git] == nil { // the spans made the repository
		for name := range p.now {
			if within(name, git) {
				p.set(name, nil)
			}
		}
		return
	}
	if u.others {
		for name := range p.now {
			if _, of := inGit(name); within(name, git) && of != gitSettings && of != gitObjects && u.base[name] == nil {
				p.set(name, nil)
			}
		}
	}
	for name, e := range u.base {
		_, of := inGit(name)
		_, changed := p.first[name]
		switch {
		case of == gitSettings:
		case of == gitObjects:
			if p.now[name] == nil {
				p.set(name, e)
			}
		case changed || u.others:
			p.set(name, e)
		}
	}
	for name, e := range p.first {
		if _, of := inGit(name); within(name, git) && e == nil && of != gitSettings && of != gitObjects {
			p.set(name, nil)
		}
	}
}

// parents makes the target complete: what stays, and what is restored, has its folders.
func (p *planner) parents() {
	names := slices.Sorted(maps.Keys(p.target)) // folders before their contents
	for _, name := range names {
		p.parent(name)
	}
}

// parent makes sure that the folder of a path is in the target, or drops the path. The folder's own folder is there.
func (p *planner) parent(name string) {
	dir := path.Dir(name)
	if dir == "." || p.target[name] == nil {
		return
	}
	at := p.target[dir]
	switch {
	case at != nil && at.kind == folder:
		return
	case at == nil && p.now[dir] != nil && p.now[dir].kind == folder: // others have put something into it
		p.target[dir] = p.now[dir]
	case at == nil:
		p.target[dir] = p.folderOf(dir, name)
	case at.kind == kept:
		delete(p.target, name)
		return
	case p.now[dir] != nil && p.now[dir].kind == folder: // others have put something into a folder that becomes a file
		if p.files = append(p.files, name); p.overwrite {
			delete(p.target, name)
			return
		}
		p.target[dir] = p.now[dir]
	default: // others have put something in place of the folder
		if p.files = append(p.files, dir); !p.overwrite {
			delete(p.target, name)
			return
		}
		p.target[dir] = p.folderOf(dir, name)
	}
	p.parent(dir)
}

// folderOf returns an entry for the folder of a path.
func (p *planner) folderOf(dir, name string) *entry {
	for _, e := range []*entry{p.first[dir], p.state[dir]} {
		if e != nil && e.kind == folder {
			return e
		}
	}
	e := p.target[name]
	return &entry{path: dir, kind: folder, mode: 0o755, uid: e.uid, gid: e.gid}
}
