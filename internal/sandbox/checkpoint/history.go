package checkpoint

import (
	"fmt"
	"slices"

	"deckhand/internal/sandbox/checkpoint/record"
)

// history goes from one checkpoint to another. A step to a later one reads only what changed in between.
type history struct {
	s      *Store
	number int
	state  record.State
}

// to goes to a checkpoint. It returns the entries that the paths that may differ had before, nil for a path that did not exist.
func (h *history) to(n int) (map[string]*record.Entry, error) {
	if h.state == nil {
		st, _, err := h.s.load(n)
		h.state, h.number = st, n
		return nil, err
	}
	var chain []*record.Record
	at := n
	for at > h.number {
		r, err := h.s.read(at)
		if err != nil {
			return nil, err
		}
		if r.Parent >= at || len(chain) > 2*maxChain {
			return nil, fmt.Errorf("%w: %d", ErrCorrupt, n)
		}
		chain = append(chain, r)
		at = r.Parent
	}
	if at != h.number { // a complete record is in between, or n is an earlier checkpoint
		return h.jump(n)
	}
	old := map[string]*record.Entry{}
	touch := func(p string) {
		if _, ok := old[p]; !ok {
			old[p] = h.state[p]
		}
	}
	for _, r := range slices.Backward(chain) {
		for _, p := range r.Removed {
			touch(p)
			delete(h.state, p)
		}
		for _, e := range r.Changed {
			touch(e.Path)
			h.state[e.Path] = e
		}
	}
	h.number = n
	return old, nil
}

// visit is to, for package plan.
func (h *history) visit(n int) (record.State, map[string]*record.Entry, error) {
	old, err := h.to(n)
	return h.state, old, err
}

func (h *history) jump(n int) (map[string]*record.Entry, error) {
	st, _, err := h.s.load(n)
	if err != nil {
		return nil, err
	}
	old := map[string]*record.Entry{}
	for p, e := range h.state {
		if record.Differ(e, st[p]) {
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
