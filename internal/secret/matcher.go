package secret

import "slices"

// matcher finds the longest of many strings at one position of a text. Strings can be
// added and removed at any time. Nearly every position is rejected by one array lookup;
// secrets with a common prefix ("sk-proj-") are distinguished by length and hash, not one
// by one.
type matcher struct {
	filter []uint16 // how many heads have this hash; full means "many", permanently
	refs   map[string]int
	heads  map[string]*bucket
}

// bucket holds the strings with the same first bytes.
type bucket struct {
	all    map[string]struct{}
	lens   []int       // distinct lengths, longest first
	counts map[int]int // strings of each length
}

func newMatcher() matcher {
	return matcher{
		filter: make([]uint16, 1<<filterBits),
		refs:   map[string]int{}, heads: map[string]*bucket{},
	}
}

func (m *matcher) add(s string) {
	if m.refs[s]++; m.refs[s] > 1 {
		return
	}
	if n := &m.filter[slot(s)]; *n < ^uint16(0) {
		*n++
	}
	b := m.heads[s[:headLen]]
	if b == nil {
		b = &bucket{all: map[string]struct{}{}, counts: map[int]int{}}
		m.heads[s[:headLen]] = b
	}
	b.all[s] = struct{}{}
	if b.counts[len(s)]++; b.counts[len(s)] == 1 {
		b.lens = append(b.lens, len(s))
		slices.SortFunc(b.lens, func(x, y int) int { return y - x })
	}
}

func (m *matcher) remove(s string) {
	if m.refs[s]--; m.refs[s] > 0 {
		return
	}
	delete(m.refs, s)
	if n := &m.filter[slot(s)]; *n < ^uint16(0) {
		*n--
	}
	b := m.heads[s[:headLen]]
	delete(b.all, s)
	if b.counts[len(s)]--; b.counts[len(s)] == 0 {
		delete(b.counts, len(s))
		b.lens = slices.DeleteFunc(b.lens, func(n int) bool { return n == len(s) })
	}
	if len(b.all) == 0 {
		delete(m.heads, s[:headLen])
	}
}

// match returns the length of the longest string that is a prefix of text, or 0.
func (m *matcher) match(text string) int {
	if m.filter[slot(text)] == 0 {
		return 0
	}
	b := m.heads[text[:headLen]]
	if b == nil {
		return 0
	}
	for _, n := range b.lens {
		if n <= len(text) && m.refs[text[:n]] > 0 {
			return n
		}
	}
	return 0
}
