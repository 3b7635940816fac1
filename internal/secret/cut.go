package secret

import (
	"cmp"
	"slices"
	"strings"

	"deckhand/internal/secret/cut"
)

// Long text is cut before it is masked: in the sandbox, which knows no secrets, or by a tool. A mark stands for what was
// cut out. The beginning of a secret before a mark and the end of one after it are masked as well.

// minPart is how much of a secret is masked at a cut. Less tells nothing, and occurs by chance.
const minPart = 4

// parts is what of forms can be part of a cut text.
type parts struct {
	text    string   // all forms, each followed by a 0 byte
	grams   []uint64 // which sequences of headLen bytes occur in them, by slot
	longest int
}

func newParts(forms []string) parts {
	p := parts{grams: make([]uint64, 1<<filterBits/64)}
	var b strings.Builder
	for _, f := range forms {
		b.WriteString(f)
		b.WriteByte(0)
		p.longest = max(p.longest, len(f))
		for i := range len(f) - headLen + 1 {
			h := slot(f[i:])
			p.grams[h/64] |= 1 << (h % 64)
		}
	}
	p.text = b.String()
	return p
}

// telling reports whether a part of a secret says something about it.
func telling(part string) bool {
	different := 3
	if len(part) >= MinMasked {
		different = 2
	}
	return len(part) >= minPart && distinct(part) >= different && !isCommon(strings.ToLower(part))
}

// before returns the beginning of a secret with which a text ends.
func (a *automaton) before(s string) (span, bool) {
	s = strings.TrimRight(s, cut.Around)
	from := max(0, len(s)-a.parts.longest)
	var found scan
	found.run(a, s[from:], 0)
	part := span{len(s) - a.depth(found.state), len(s)}
	return part, telling(s[part.from:part.to])
}

// after returns the end of a secret with which the text at a position begins. Unknown means that more text must follow
// to tell; what follows open may be a mark.
func (a *automaton) after(s string, at, open int) (part span, found, unknown bool) {
	rest := strings.TrimLeft(s[at:], cut.Around)
	at = len(s) - len(rest)
	begun := strings.TrimRight(s[at:max(at, open)], cut.Around)
	if len(begun) < headLen {
		return part, false, strings.Contains(a.parts.text, begun)
	}
	if h := slot(rest); a.parts.grams[h/64]&(1<<(h%64)) == 0 {
		return part, false, false
	}
	unknown = len(begun) < a.parts.longest && strings.Contains(a.parts.text, begun)
	rest = rest[:min(len(rest), a.parts.longest)]
	part = span{at, at + cut.Ending(rest, a.parts.text)}
	return part, telling(s[part.from:part.to]), unknown
}

// inside reports whether the text between two cuts is from the middle of a secret.
func (a *automaton) inside(s string, from, to int) (span, bool) {
	text := strings.Trim(s[from:to], cut.Around)
	if len(text) < MinMasked || len(text) > a.parts.longest {
		return span{}, false
	}
	if h := slot(text); a.parts.grams[h/64]&(1<<(h%64)) == 0 {
		return span{}, false
	}
	return span{from, to}, telling(text) && strings.Contains(a.parts.text, text)
}

// cuts returns the parts of secrets beside the marks of a text. What follows safe may be another part when more text
// follows.
func (a *automaton) cuts(s string) (found []span, safe int) {
	if a == none {
		return nil, len(s)
	}
	all, open := cut.Marks(s)
	safe = open
	for i, m := range all {
		if i > 0 {
			if part, ok := a.inside(s, all[i-1].To, m.From); ok {
				found = append(found, part)
			}
		}
		if part, ok := a.before(s[:m.From]); ok {
			found = append(found, part)
		}
		part, ok, unknown := a.after(s, m.To, open)
		if ok {
			found = append(found, part)
		}
		if unknown {
			safe = min(safe, m.From)
		}
	}
	// A mark may follow what the text ends with.
	if part, ok := a.before(s[:safe]); ok {
		safe = part.from
	}
	return found, safe
}

// joined returns spans in order, those that overlap as one.
func joined(all ...span) []span {
	slices.SortFunc(all, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	var out scan
	for _, s := range all {
		out.found(s.from, s.to)
	}
	return out.spans
}

// Part returns a part of a longer text with all secrets masked, as String does, and with the rest of a secret that began
// before it, if it follows other text, or that goes on after it, if it continues.
func (m *Masker) Part(s string, follows, continues bool) string {
	a := m.automaton()
	if a == none {
		return s
	}
	var ends []span
	if part, ok, _ := a.after(s, 0, len(s)); ok && follows {
		ends = append(ends, part)
	}
	if part, ok := a.before(s); ok && continues {
		ends = append(ends, part)
	}
	if part, ok := a.inside(s, 0, len(s)); ok && follows && continues {
		ends = append(ends, part)
	}
	return a.mask(s, ends...)
}
