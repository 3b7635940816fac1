package secret

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Shape says which parts of a JSON text are read by programs. They are never masked:
// identifiers must not change because a secret is the same word. The zero Shape keeps
// only the names of fields.
type Shape struct {
	root part
	// below makes the names of nested fields text, too.
	below bool
}

// part is the rule for a value and its contents.
type part struct {
	keep   bool // it is as it is, but for descriptions in it
	coded  bool // it is a string that holds JSON
	free   bool // names of fields in it are text too
	fields map[string]*part
}

// Inner is the Shape of a JSON text of which only the outermost names are known.
var Inner = &Shape{below: true}

// NewShape returns a Shape from paths: names of fields, separated by dots. Arrays are
// skipped: a path means the field in each element. keep lists values that are kept, free
// values with arbitrary field names, and coded strings that contain JSON.
func NewShape(keep, free, coded []string) *Shape {
	s := &Shape{}
	for _, path := range keep {
		s.root.at(path).keep = true
	}
	for _, path := range free {
		s.root.at(path).free = true
	}
	for _, path := range coded {
		s.root.at(path).coded = true
	}
	return s
}

func (p *part) at(path string) *part {
	for name := range strings.SplitSeq(path, ".") {
		next := p.fields[name]
		if next == nil {
			next = &part{}
			if p.fields == nil {
				p.fields = map[string]*part{}
			}
			p.fields[name] = next
		}
		p = next
	}
	return p
}

// Parts of which no Shape says anything.
var (
	plainPart = &part{}
	freePart  = &part{free: true}
	keptPart  = &part{keep: true}
)

// in returns the part with a name.
func (p *part) in(name []byte) *part {
	switch next := p.fields[string(name)]; {
	case next != nil:
		return next
	case p.keep && string(name) != "description":
		return keptPart
	case p.free:
		return freePart
	}
	return plainPart
}

// JSON returns a JSON text with all secrets masked in its strings, at any depth, except
// where shape keeps them; nil is the zero Shape. Text that is not JSON is masked as text.
func (m *Masker) JSON(text []byte, shape *Shape) []byte {
	a := m.automaton()
	if a == none || len(text) < MinMasked {
		return text
	}
	root := plainPart
	if shape != nil {
		root = &shape.root
	}
	w := walk{find: a, text: text, below: shape != nil && shape.below}
	if !w.whole(root) {
		return []byte(a.mask(string(text)))
	}
	if w.out == nil {
		return text
	}
	return append(w.out, text[w.copied:]...)
}

// walk is one pass over a JSON text. Values other than strings are skipped.
type walk struct {
	find   *automaton
	text   []byte
	below  bool // names below the outermost ones are text too
	at     int
	out    []byte // nil until something was masked
	copied int    // what of text is in out
}

// maxDepth is the maximum nesting.
const maxDepth = 10_000

// whole reads the single value of the text.
func (w *walk) whole(p *part) bool {
	if !w.value(p, 0) {
		return false
	}
	w.space()
	return w.at == len(w.text)
}

// value reads a value; false means that the text is not JSON.
func (w *walk) value(p *part, depth int) bool {
	w.space()
	if w.at >= len(w.text) || depth > maxDepth {
		return false
	}
	switch w.text[w.at] {
	case '{':
		return w.list('}', func() bool { return w.field(p, depth) })
	case '[':
		return w.list(']', func() bool { return w.value(p, depth+1) })
	case '"':
		return w.mask(p)
	}
	start := w.at
	for w.at < len(w.text) && strings.IndexByte(",]} \t\r\n", w.text[w.at]) < 0 {
		w.at++
	}
	return w.at > start
}

// field reads a name and its value.
func (w *walk) field(p *part, depth int) bool {
	start := w.at
	raw, ok := w.quoted()
	if !ok {
		return false
	}
	name := raw[1 : len(raw)-1]
	if p.free || w.below && depth > 0 {
		w.at = start
		if !w.mask(plainPart) {
			return false
		}
	}
	if w.space(); w.at >= len(w.text) || w.text[w.at] != ':' {
		return false
	}
	w.at++
	return w.value(p.in(name), depth+1)
}

// list reads the elements between brackets.
func (w *walk) list(end byte, element func() bool) bool {
	w.at++
	if w.space(); w.at < len(w.text) && w.text[w.at] == end {
		w.at++
		return true
	}
	for {
		if w.space(); !element() {
			return false
		}
		w.space()
		switch {
		case w.at >= len(w.text):
			return false
		case w.text[w.at] == end:
			w.at++
			return true
		case w.text[w.at] != ',':
			return false
		}
		w.at++
	}
}

// mask reads a string and rewrites it if it contains a secret. It compares the decoded
// string: a mask must not split an escape, and JSON within JSON is escaped twice.
func (w *walk) mask(p *part) bool {
	start := w.at
	raw, ok := w.quoted()
	if !ok || p.keep {
		return ok
	}
	meant := string(raw[1 : len(raw)-1])
	if bytes.IndexByte(raw, '\\') >= 0 && json.Unmarshal(raw, &meant) != nil {
		return false
	}
	masked := w.masked(p, meant)
	if masked == meant {
		return true
	}
	w.out = append(w.out, w.text[w.copied:start+1]...)
	w.out = append(w.out, jsonEscaped(masked, true)...)
	w.copied = w.at - 1
	return true
}

func (w *walk) masked(p *part, meant string) string {
	if p.coded {
		inner := walk{find: w.find, text: []byte(meant)}
		if inner.whole(freePart) {
			return string(append(inner.out, inner.text[inner.copied:]...))
		}
	}
	return w.find.mask(meant)
}

// quoted reads a string and returns it with its quotes.
func (w *walk) quoted() ([]byte, bool) {
	if w.at >= len(w.text) || w.text[w.at] != '"' {
		return nil, false
	}
	for i := w.at + 1; i < len(w.text); i++ {
		switch w.text[i] {
		case '\\':
			i++
		case '"':
			raw := w.text[w.at : i+1]
			w.at = i + 1
			return raw, true
		}
	}
	return nil, false
}

func (w *walk) space() {
	for w.at < len(w.text) && (w.text[w.at] == ' ' || w.text[w.at] == '\t' || w.text[w.at] == '\n' || w.text[w.at] == '\r') {
		w.at++
	}
}
