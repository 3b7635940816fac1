package secret

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// maxBuilt is the maximum size of the automata of all owners together. One that does
	// not fit is built again when it is needed; no value is lost.
	maxBuilt = 128 << 20
	// maxHeld is the maximum size of held values for each owner. The oldest are dropped
	// first.
	maxHeld = 128 << 10
)

// Maskers keeps one Masker for each owner. Values of one owner neither change the text of
// another nor displace its values. Every value is also added to a Redactor for as long as
// an owner has it.
type Maskers struct {
	logs  *Redactor
	clock atomic.Int64
	limit int // of automata, in bytes

	mu     sync.Mutex
	owners map[string]*owned
}

// owned is the state of one owner.
type owned struct {
	masker  *Masker
	version int64
	stale   bool
	stored  []string
	held    []held // the oldest first
}

// held is a value that is in use, even if the stored one changes.
type held struct{ holder, value string }

// NewMaskers returns Maskers without owners. logs learns every value.
func NewMaskers(logs *Redactor) *Maskers {
	return &Maskers{logs: logs, limit: maxBuilt, owners: map[string]*owned{}}
}

// Of returns the Masker of an owner, which is always the same one, and whether it has the
// values of the last Set.
func (a *Maskers) Of(owner string) (m *Masker, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.of(owner)
	return o.masker, !o.stale
}

func (a *Maskers) of(owner string) *owned {
	o := a.owners[owner]
	if o == nil {
		o = &owned{masker: &Masker{all: a}, version: -1, stale: true}
		a.owners[owner] = o
	}
	return o
}

// Set replaces the stored values of an owner: removed values are forgotten unless they
// are held. A version older than the last Set is ignored, unless Expire was called since.
func (a *Maskers) Set(owner string, version int64, values []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.of(owner)
	if !o.stale && version <= o.version {
		return
	}
	o.version, o.stale, o.stored = version, false, values
	a.renew(o)
}

// Expire marks the stored values as possibly changed.
func (a *Maskers) Expire(owner string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.owners[owner]; o != nil {
		o.stale = true
	}
}

// Hold keeps values masked until Release, even if the stored ones change: a running shell
// has them in its environment.
func (a *Maskers) Hold(owner, holder string, values ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.of(owner)
	before, known := len(o.held), map[held]bool{}
	for _, h := range o.held {
		known[h] = true
	}
	for _, v := range values {
		if h := (held{holder, v}); !known[h] && Weakness(v) == "" {
			known[h] = true
			o.held = append(o.held, h)
		}
	}
	if len(o.held) == before {
		return
	}
	size := 0
	for i := len(o.held) - 1; i >= 0; i-- {
		if size += len(o.held[i].value); size > maxHeld {
			o.held = slices.Delete(o.held, 0, i+1)
			break
		}
	}
	a.renew(o)
}

// Release ends all holds of a holder, for any owner.
func (a *Maskers) Release(holder string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.owners {
		before := len(o.held)
		o.held = slices.DeleteFunc(o.held, func(h held) bool { return h.holder == holder })
		if len(o.held) != before {
			a.renew(o)
		}
	}
}

// renew updates the values of an owner's Masker. The caller holds mu.
func (a *Maskers) renew(o *owned) {
	values := slices.Clone(o.stored)
	for _, h := range o.held {
		values = append(values, h.value)
	}
	values = strong(values)
	before := o.masker.known()
	if slices.Equal(values, before) {
		return
	}
	a.logs.keep(values)
	o.masker.set(values)
	a.logs.drop(before)
}

// trim drops the least recently used automata until the rest fits. That of m is kept,
// because it is in use.
func (a *Maskers) trim(m *Masker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	total, built := 0, []*Masker{}
	for o := range maps.Values(a.owners) {
		if b := o.masker.built.Load(); b != nil && b != none {
			total += b.size()
			built = append(built, o.masker)
		}
	}
	if total <= a.limit {
		return
	}
	slices.SortFunc(built, func(x, y *Masker) int { return cmp.Compare(x.used.Load(), y.used.Load()) })
	for _, old := range built {
		if b := old.built.Load(); old != m && b != nil && total > a.limit {
			total -= b.size()
			old.built.Store(nil)
		}
	}
}
