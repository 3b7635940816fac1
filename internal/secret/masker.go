package secret

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// Masker replaces the secrets of one owner in text by the mask, in every common encoding:
// raw, base64 (also inside a longer encoded text), hex, URL- or JSON-escaped. Values with
// a Weakness are not masked. A nil Masker masks nothing. It is safe for concurrent use.
type Masker struct {
	all *Maskers // nil for a Masker without an owner
	// used is when it was last used, as counted by all.
	used atomic.Int64
	// built is nil until it is needed.
	built atomic.Pointer[automaton]

	mu     sync.Mutex
	values []string // in order, each once
}

// NewMasker returns a Masker for values.
func NewMasker(values ...string) *Masker {
	m := &Masker{}
	m.set(strong(values))
	return m
}

// With returns a Masker for the values of m and more values.
func (m *Masker) With(values ...string) *Masker {
	if m == nil {
		return NewMasker(values...)
	}
	return NewMasker(append(values, m.known()...)...)
}

// Add adds values.
func (m *Masker) Add(values ...string) { m.set(strong(append(values, m.known()...))) }

// strong returns the values to mask, sorted and without duplicates.
func strong(values []string) []string {
	var out []string
	for _, v := range values {
		if Weakness(v) == "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (m *Masker) known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.values)
}

// set replaces the values, which must be strong.
func (m *Masker) set(values []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(values, m.values) {
		m.values = values
		m.built.Store(nil)
	}
}

// none finds nothing.
var none = newAutomaton(nil)

// automaton returns the automaton for the current values.
func (m *Masker) automaton() *automaton {
	if m == nil {
		return none
	}
	if m.all != nil {
		m.used.Store(m.all.clock.Add(1))
	}
	if a := m.built.Load(); a != nil {
		return a
	}
	a := m.build()
	if m.all != nil {
		m.all.trim(m)
	}
	return a
}

func (m *Masker) build() *automaton {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.built.Load(); a != nil {
		return a
	}
	a := none
	if len(m.values) > 0 {
		var forms []string
		for _, v := range m.values {
			forms = append(forms, writtenForms(v)...)
		}
		a = newAutomaton(forms)
		a.parts = newParts(forms)
	}
	m.built.Store(a)
	return a
}

// String returns s with all secrets masked. Overlapping secrets are masked as one, so
// that no part of the second remains. Where s was cut, the parts of a secret beside the cut
// are masked.
func (m *Masker) String(s string) string {
	if a := m.automaton(); a != none {
		return a.mask(s)
	}
	return s
}

// mask masks what it finds in s, and other parts of s.
func (a *automaton) mask(s string, more ...span) string {
	var found scan
	found.run(a, s, 0)
	cuts, _ := a.cuts(s)
	if len(found.spans)+len(cuts)+len(more) == 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	at := 0
	for _, f := range joined(slices.Concat(found.spans, cuts, more)...) {
		out = append(append(out, s[at:f.from]...), Mask...)
		at = f.to
	}
	return string(append(out, s[at:]...))
}

// Writer masks the text that is written to it. It holds back text that may be the start
// of a secret until the next Write.
type Writer struct {
	m    *Masker
	w    io.Writer
	mu   sync.Mutex
	with *automaton
	scan scan
	held []byte
	err  error
	// follows means that the text before the first byte was cut off, and that it may have ended within a secret.
	follows bool
}

// Writer returns a masking writer in front of w. Its output, with Held, is what String
// would return for the whole text, however it is split into writes. Secrets that are
// added later are masked in text that is written afterwards.
func (m *Masker) Writer(w io.Writer) *Writer { return &Writer{m: m, w: w} }

// Following returns a masking writer for text that follows other text, as Part does.
func (m *Masker) Following(w io.Writer) *Writer { return &Writer{m: m, w: w, follows: true} }

// Write writes all of b, or returns the error of the underlying writer.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	if err := w.take(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Held returns what is held back, as it is recorded if nothing follows. If its end would be
// masked as a value, it is masked: output that is cut off in a secret must not end with
// most of it.
func (w *Writer) Held() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return ""
	}
	same := Writer{held: slices.Clone(w.held), scan: scan{spans: slices.Clone(w.scan.spans)}}
	cuts, _ := w.cuts()
	if begun := len(w.held) - w.with.depth(w.scan.state); Weakness(string(w.held[begun:])) == "" {
		cuts = append(cuts, span{begun, len(w.held)})
	}
	same.scan.spans = joined(append(same.scan.spans, cuts...)...)
	return string(same.decided(len(same.held)))
}

func (w *Writer) take(b []byte) error {
	at := len(w.held)
	if a := w.m.automaton(); a != w.with { // other secrets are known than before
		w.with, w.scan.state, at = a, 0, 0
	}
	w.held = append(w.held, b...)
	w.scan.run(w.with, string(w.held), at)
	cuts, known := w.cuts()
	safe := min(known, len(w.held)-w.with.depth(w.scan.state)) // what stands before is decided
	if len(cuts) > 0 {
		w.scan.spans = joined(append(w.scan.spans, cuts...)...)
	}
	w.follows = w.follows && safe == 0
	if out := w.decided(safe); len(out) > 0 {
		_, w.err = w.w.Write(out)
	}
	return w.err
}

// cuts is that of the automaton for the held text.
func (w *Writer) cuts() (found []span, safe int) {
	text := string(w.held)
	found, safe = w.with.cuts(text)
	if !w.follows || w.with == none {
		return found, safe
	}
	part, ok, unknown := w.with.after(text, 0, len(text))
	if ok {
		found = append(found, part)
	}
	if unknown {
		safe = 0
	}
	return found, safe
}

// decided removes the text before safe from the held text. A span that reaches beyond it
// is masked when its end is known; its bytes need not be kept.
func (w *Writer) decided(safe int) []byte {
	var out []byte
	at, left := 0, w.scan.spans[:0]
	for _, f := range w.scan.spans {
		if f.from < safe {
			out = append(out, w.held[at:max(at, f.from)]...)
			at = min(f.to, safe)
			if f.to <= safe {
				out = append(out, Mask...)
				continue
			}
		}
		left = append(left, span{max(f.from-safe, 0), f.to - safe})
	}
	out = append(out, w.held[at:max(at, safe)]...)
	w.held = append(w.held[:0], w.held[safe:]...)
	w.scan.spans = left
	return out
}
