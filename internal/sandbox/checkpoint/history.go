package checkpoint

import (
	"fmt"
	"path"
	"slices"
)

// history goes from one checkpoint to another. A step to a later one reads only what changed in between.
type history struct {
	s      *Store
	number int
	state  state
}

// to goes to a checkpoint. It returns the entries that the paths that may differ had before, nil for a path that did not exist.
func (h *history) to(n int) (map[string]*entry, error) {
	if h.state == nil {
		st, _, err := h.s.load(n)
		h.state, h.number = st, n
		return nil, err
	}
	var chain []*record
	at := n
	for at > h.number {
		r, err := h.s.read(at)
		if err != nil {
			return nil, err
		}
		if r.parent >= at || len(chain) > 2*maxChain {
			return nil, fmt.Errorf("%w: %d", ErrCorrupt, n)
		}
		chain = append(chain, r)
		at = r.parent
	}
	if at != h.number { // a complete record is in between, or n is an earlier checkpoint
		return h.jump(n)
	}
	old := map[string]*entry{}
	touch := func(p string) {
		if _, ok := old[p]; !ok {
			old[p] = h.state[p]
		}
	}
	for _, r := range slices.Backward(chain) {
		for _, p := range r.removed {
			touch(p)
			delete(h.state, p)
		}
		for _, e := range r.changed {
			touch(e.path)
			h.state[e.path] = e
		}
	}
	h.number = n
	return old, nil
}

func (h *history) jump(n int) (map[string]*entry, error) {
	st, _, err := h.s.load(n)
	if err != nil {
		return nil, err
	}
	old := map[string]*entry{}
	for p, e := range h.state {
		if differ(e, st[p]) {
			old[p] = e
		}
	}
	for p := range st {
		if h.state[p] == nil {
			old[p] = nil
		}
	}
	h.number, h.state = n, st
	return old, nil
}

// differ reports whether a user can tell two entries apart. nil means that there is none.
func differ(a, b *entry) bool {
	if a == nil || b == nil {
		return a != b
	}
	return !a.same(b)
}

// leftOut reports whether a path, or a folder that it is in, is in no checkpoint in one of two states. old are the entries of
// the first state that differ from now.
func leftOut(p string, old map[string]*entry, now state) bool {
	for ; p != "."; p = path.Dir(p) {
		if e := now[p]; e != nil && e.kind == kept {
			return true
		}
		if e := old[p]; e != nil && e.kind == kept {
			return true
		}
	}
	return false
}
