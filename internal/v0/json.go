package v0

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// writer appends one JSON value. Every event of every reader passes here, so it
// writes into one buffer of about the right size instead of reflecting over structs;
// that also keeps the keys in the order of the contract.
type writer struct {
	b []byte
	// from and to enclose the envelope's message, for again.
	from, to int
}

func newWriter(size int) *writer { return &writer{b: make([]byte, 0, size)} }

// again repeats the message under another name. Long texts are quoted once this way.
func (w *writer) again(k string) {
	w.key(k)
	w.b = append(w.b, w.b[w.from:w.to]...)
}

// comma separates from what stands before. A string never ends in a bare bracket,
// so the last byte tells whether this is the first member.
func (w *writer) comma() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' {
		w.b = append(w.b, ',')
	}
}

// key writes a name; names are ours and need no escaping.
func (w *writer) key(k string) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, k...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) str(k, v string) {
	w.key(k)
	w.b = appendString(w.b, v)
}

func (w *writer) num(k string, v int64) {
	w.key(k)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *writer) float(k string, v float64) {
	w.key(k)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0 // JSON has no word for them
	}
	w.b = jsontext.AppendFloat(w.b, v, 64)
}

func (w *writer) flag(k string, v bool) {
	w.key(k)
	w.b = strconv.AppendBool(w.b, v)
}

// lit writes a value that is JSON already, from our own source code.
func (w *writer) lit(k, v string) {
	w.key(k)
	w.b = append(w.b, v...)
}

// opt writes null for what was not given, which is not the same as an empty text.
func (w *writer) opt(k string, v *string) {
	if v == nil {
		w.lit(k, "null")
		return
	}
	w.str(k, *v)
}

// strs writes null for an empty list, as the contract does.
func (w *writer) strs(k string, v []string) {
	if len(v) == 0 {
		w.lit(k, "null")
		return
	}
	w.list(k, v)
}

func (w *writer) list(k string, v []string) {
	w.open(k, '[')
	for _, s := range v {
		w.comma()
		w.b = appendString(w.b, s)
	}
	w.shut(']')
}

// raw writes JSON that somebody else made, on one line: a line break would end an SSE
// frame. What is not JSON becomes a string, because a stream must not stop at it.
func (w *writer) raw(k string, v []byte) {
	w.key(k)
	if !utf8.Valid(v) {
		v = bytes.ToValidUTF8(v, []byte("\uFFFD"))
	}
	at := len(w.b)
	b, err := jsontext.AppendFormat(w.b, v)
	if err != nil {
		b = appendString(b[:at], string(v))
	}
	w.b = b
}

// object is raw for what must be an object.
func (w *writer) object(k string, v []byte) {
	if kindOf(v) != '{' {
		w.lit(k, "{}")
		return
	}
	w.raw(k, v)
}

// array is raw for what must be an array; other is written when it is none.
func (w *writer) array(k string, v []byte, other string) {
	if kindOf(v) != '[' {
		w.lit(k, other)
		return
	}
	w.raw(k, v)
}

// open begins an object or array, shut ends it. An empty name is the outermost one's
// or an element's.
func (w *writer) open(k string, bracket byte) {
	if k == "" {
		w.comma()
	} else {
		w.key(k)
	}
	w.b = append(w.b, bracket)
}

func (w *writer) shut(bracket byte) { w.b = append(w.b, bracket) }

// kindOf is the kind of a JSON value, 0 when it is none.
func kindOf(v []byte) jsontext.Kind {
	if len(v) == 0 {
		return 0
	}
	switch k := jsontext.Value(v).Kind(); k {
	case '{', '[': // text that only begins like one would be written as a string
		if !jsontext.Value(v).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			return 0
		}
		return k
	default:
		return k
	}
}

const hexDigits = "0123456789abcdef"

// plain are the bytes that stand for themselves in a JSON string.
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// appendString quotes s. Bytes that are not UTF-8 become U+FFFD: tools return what
// programs print, and a reader must get valid JSON whatever that is.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			b = appendEscape(b, c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\uFFFD"...)
			start = i + 1
		}
		i += n
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	default:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
}
