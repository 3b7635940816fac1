package secret

import (
	"slices"
	"strings"
)

const (
	headLen    = 4 // every form is at least this long
	filterBits = 16
)

// matcher finds, at one position of a text, the longest of many strings. Strings can
// be added and removed at any time. Nearly every position is turned away by one look
// at an array; secrets that share a beginning ("sk-proj-") are told apart by length
// and hash, not one by one.
type matcher struct {
	filter []uint16 // how many heads have this hash; full means "many", for ever
	refs   map[string]int
	heads  map[string]*bucket
	// starts counts the first 1 to 3 bytes of all strings, for the end of a piece of text.
	starts map[string]int
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
		refs:   map[string]int{}, heads: map[string]*bucket{}, starts: map[string]int{},
	}
}

func slot(s string) uint32 {
	h := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
	return h * 0x9E3779B1 >> (32 - filterBits)
}

func (m *matcher) add(s string) {
	if m.refs[s]++; m.refs[s] > 1 {
		return
	}
	if n := &m.filter[slot(s)]; *n < ^uint16(0) {
		*n++
	}
	for n := 1; n < headLen; n++ {
		m.starts[s[:n]]++
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
	for n := 1; n < headLen; n++ {
		if m.starts[s[:n]]--; m.starts[s[:n]] == 0 {
			delete(m.starts, s[:n])
		}
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

// match returns the length of the longest string that text begins with, or 0. Unless
// final, it asks to wait when text may be the beginning of a longer one.
func (m *matcher) match(text string, final bool) (n int, wait bool) {
	if len(text) < headLen {
		return 0, !final && m.starts[text] > 0
	}
	if m.filter[slot(text)] == 0 {
		return 0, false
	}
	b := m.heads[text[:headLen]]
	if b == nil {
		return 0, false
	}
	if !final && b.lens[0] > len(text) {
		// One by one, but only where a piece of text ends with the beginning of a secret.
		for long := range b.all {
			if len(long) > len(text) && strings.HasPrefix(long, text) {
				return 0, true
			}
		}
	}
	for _, n := range b.lens {
		if n <= len(text) && m.refs[text[:n]] > 0 {
			return n, false
		}
	}
	return 0, false
}
