// Package hide replaces secrets in a stream of output.
package hide

import (
	"bytes"
	"slices"
	"strings"
)

// Hidden stands for a secret in the file of an output.
const Hidden = "**********"

// Hider replaces secrets in a stream. It holds back what could be the beginning of one.
type Hider struct {
	values   [][]byte
	replacer *strings.Replacer
	longest  int
	held     []byte
}

// New returns nil if there is nothing to hide.
func New(values []string) *Hider {
	h := &Hider{}
	var pairs []string
	// The longest first: of two that begin alike, the replacer takes the first.
	values = slices.SortedFunc(slices.Values(values), func(a, b string) int { return len(b) - len(a) })
	for _, v := range values {
		if v == "" {
			continue
		}
		h.values = append(h.values, []byte(v))
		h.longest = max(h.longest, len(v))
		pairs = append(pairs, v, Hidden)
	}
	if len(pairs) == 0 {
		return nil
	}
	h.replacer = strings.NewReplacer(pairs...)
	return h
}

// Add takes more of the stream and returns what can be written.
func (h *Hider) Add(b []byte) []byte {
	all := append(h.held, b...)
	safe := max(0, len(all)-h.longest+1)
	for moved := true; moved && safe > 0; {
		moved = false
		for _, v := range h.values {
			// A value across the border goes out as a whole.
			from := max(0, safe-len(v)+1)
			if i := bytes.Index(all[from:min(len(all), safe+len(v)-1)], v); i >= 0 {
				safe, moved = from+i+len(v), true
			}
		}
	}
	out := []byte(h.replacer.Replace(string(all[:safe])))
	h.held = append(h.held[:0], all[safe:]...)
	return out
}

// End returns what was held back.
func (h *Hider) End() []byte {
	out := []byte(h.replacer.Replace(string(h.held)))
	h.held = nil
	return out
}
