package secret

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// JSON returns a JSON text with all known secrets masked in its strings, at any
// depth, in arrays too. Names of fields stay, and so do the values of the fields
// of the outermost object that keep names: what a program goes by must not
// change because somebody's secret is the same word. What is not JSON is
// returned as it is.
func (r *Redactor) JSON(text []byte, keep ...string) []byte {
	if r.count.Load() == 0 || len(text) < MinRedacted {
		return text
	}
	w := walk{redactor: r, text: text, keep: keep}
	if !w.value(0) || w.out == nil {
		return text
	}
	return append(w.out, text[w.copied:]...)
}

// walk goes through a JSON text once. Everything that is no string is passed over.
type walk struct {
	redactor *Redactor
	text     []byte
	keep     []string
	at       int
	out      []byte // nil until something was masked
	copied   int    // what of text is in out
}

// maxDepth is deeper than anything that is written here.
const maxDepth = 1000

// value passes a value; false says that the text is not JSON after all.
func (w *walk) value(depth int) bool {
	w.space()
	if w.at >= len(w.text) || depth > maxDepth {
		return false
	}
	switch w.text[w.at] {
	case '{':
		return w.list('}', func() bool {
			name, ok := w.quoted()
			if w.space(); !ok || w.at >= len(w.text) || w.text[w.at] != ':' {
				return false
			}
			w.at++
			if depth == 0 && slices.Contains(w.keep, string(name[1:len(name)-1])) {
				kept := w.redactor
				w.redactor = nil
				defer func() { w.redactor = kept }()
			}
			return w.value(depth + 1)
		})
	case '[':
		return w.list(']', func() bool { return w.value(depth + 1) })
	case '"':
		return w.mask()
	}
	start := w.at
	for w.at < len(w.text) && strings.IndexByte(",]} \t\r\n", w.text[w.at]) < 0 {
		w.at++
	}
	return w.at > start
}

// list passes what is between brackets, element by element.
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

// mask passes a string and writes it anew if there is a secret in it. It is
// looked at as it is meant, not as it is written: a mask must not cut an escape
// in two, and JSON within JSON is escaped twice.
func (w *walk) mask() bool {
	start := w.at
	raw, ok := w.quoted()
	if !ok || w.redactor == nil {
		return ok
	}
	meant := string(raw[1 : len(raw)-1])
	if bytes.IndexByte(raw, '\\') >= 0 && json.Unmarshal(raw, &meant) != nil {
		return false
	}
	masked := w.redactor.String(meant)
	if masked == meant {
		return true
	}
	w.out = append(w.out, w.text[w.copied:start+1]...)
	w.out = append(w.out, jsonEscaped(masked, true)...)
	w.copied = w.at - 1
	return true
}

// quoted passes a string and returns it with its quotes.
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
