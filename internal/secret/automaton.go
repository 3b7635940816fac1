package secret

import "slices"

// automaton finds many strings in one pass over a text (Aho-Corasick), so the time
// depends only on the length of the text. It is immutable.
type automaton struct {
	// first holds the successors of the root. Nearly all positions of a text are at the
	// root, and filter rejects them by their next headLen bytes.
	first  [256]uint32
	filter []uint64

	// States are numbered so that most of them have one successor, the next number:
	// its byte is in label. Other successors are in branch.
	label   []byte
	fail    []uint32 // the longest proper suffix that is a state
	longest []uint32 // the length of the longest string that ends here, 0 for none
	flags   []uint32 // depth and the bits below
	branch  map[uint64]uint32

	parts parts
}

const (
	hasChain  = 1 << 31 // the next number is a successor
	hasBranch = 1 << 30 // branch has successors
	depthMask = hasBranch - 1

	headLen    = 4 // every string is at least this long
	filterBits = 16
)

func slot(s string) uint32 {
	h := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
	return h * 0x9E3779B1 >> (32 - filterBits)
}

// newAutomaton finds the given strings, each at least headLen long.
func newAutomaton(all []string) *automaton {
	slices.Sort(all) // neighbours share prefixes, so chains are long
	size := 1
	for _, s := range all {
		size += len(s)
	}
	a := &automaton{filter: make([]uint64, 1<<filterBits/64), branch: map[uint64]uint32{}}
	b := builder{automaton: a}
	b.grow(size)
	for _, s := range all {
		b.insert(s)
	}
	b.link()
	a.label, a.flags = slices.Clone(a.label), slices.Clone(a.flags) // they are shorter than all strings together
	return a
}

// size returns the approximate size in bytes.
func (a *automaton) size() int {
	return 20<<10 + 13*cap(a.label) + 40*len(a.branch) + len(a.parts.text)
}

func (a *automaton) depth(state uint32) int { return int(a.flags[state] & depthMask) }

// child returns the successor of a state other than the root, or 0.
func (a *automaton) child(state uint32, c byte) uint32 {
	f := a.flags[state]
	if f&hasChain != 0 && a.label[state+1] == c {
		return state + 1
	}
	if f&hasBranch != 0 {
		return a.branch[uint64(state)<<8|uint64(c)]
	}
	return 0
}

func (a *automaton) step(state uint32, c byte) uint32 {
	for state != 0 {
		if next := a.child(state, c); next != 0 {
			return next
		}
		state = a.fail[state]
	}
	return a.first[c]
}

// builder holds the state that only building needs.
type builder struct {
	*automaton
	parent []uint32
	ends   []bool
}

func (b *builder) grow(size int) {
	b.label, b.flags = make([]byte, 1, size), make([]uint32, 1, size)
	b.parent, b.ends = make([]uint32, 1, size), make([]bool, 1, size)
}

func (b *builder) insert(s string) {
	h := slot(s)
	b.filter[h/64] |= 1 << (h % 64)
	state := uint32(0)
	for i := range len(s) {
		next := b.first[s[i]]
		if i > 0 {
			next = b.child(state, s[i])
		}
		if next == 0 {
			next = b.add(state, s[i], uint32(i+1))
		}
		state = next
	}
	b.ends[state] = true
}

// add adds a successor to a state.
func (b *builder) add(state uint32, c byte, depth uint32) uint32 {
	next := uint32(len(b.label))
	b.label, b.flags = append(b.label, c), append(b.flags, depth)
	b.parent, b.ends = append(b.parent, state), append(b.ends, false)
	switch {
	case state == 0:
		b.first[c] = next
	case next == state+1:
		b.flags[state] |= hasChain
	default:
		b.flags[state] |= hasBranch
		b.branch[uint64(state)<<8|uint64(c)] = next
	}
	return next
}

// link finds the suffixes, of short states before those of longer ones.
func (b *builder) link() {
	n := len(b.label)
	b.fail, b.longest = make([]uint32, n), make([]uint32, n)
	for _, state := range b.byDepth() {
		if p := b.parent[state]; p != 0 {
			b.fail[state] = b.step(b.fail[p], b.label[state])
		}
		if b.ends[state] {
			b.longest[state] = uint32(b.depth(state))
		} else {
			b.longest[state] = b.longest[b.fail[state]]
		}
	}
}

// byDepth lists all states except the root, shortest first.
func (b *builder) byDepth() []uint32 {
	deepest := 0
	for state := range b.flags {
		deepest = max(deepest, b.depth(uint32(state)))
	}
	from := make([]int, deepest+2)
	for state := 1; state < len(b.flags); state++ {
		from[b.depth(uint32(state))+1]++
	}
	for i := 1; i < len(from); i++ {
		from[i] += from[i-1]
	}
	out := make([]uint32, len(b.flags)-1)
	for state := 1; state < len(b.flags); state++ {
		d := b.depth(uint32(state))
		out[from[d]] = uint32(state)
		from[d]++
	}
	return out
}

// span is a part of a text to mask: from is inclusive, to is exclusive.
type span struct{ from, to int }

// scan searches a text that may arrive in pieces. Positions are relative to the start of
// the buffered text.
type scan struct {
	state uint32
	spans []span // in order, none overlapping another
}

// run scans text from position at.
func (s *scan) run(a *automaton, text string, at int) {
	state := s.state
	for at < len(text) {
		if state == 0 {
			for at+headLen <= len(text) {
				if h := slot(text[at:]); a.filter[h/64]&(1<<(h%64)) != 0 {
					break
				}
				at++
			}
			if at >= len(text) {
				break
			}
		}
		state = a.step(state, text[at])
		at++
		if n := a.longest[state]; n != 0 {
			s.found(at-int(n), at)
		}
	}
	s.state = state
}

// found adds a span and merges it with those that it overlaps.
func (s *scan) found(from, to int) {
	for n := len(s.spans); n > 0 && s.spans[n-1].to > from; n-- {
		from, to = min(from, s.spans[n-1].from), max(to, s.spans[n-1].to)
		s.spans = s.spans[:n-1]
	}
	s.spans = append(s.spans, span{from, to})
}
