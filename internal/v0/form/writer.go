package form

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer appends one JSON value. Every event of every reader passes here, so it
// writes into one buffer of about the right size instead of reflecting over structs;
// that also keeps the keys in the order of the contract.
type Writer struct {
	B []byte
	// from and to enclose the envelope's message, for again.
	from, to int
}

// NewWriter makes one for about so many bytes.
func NewWriter(size int) *Writer { return &Writer{B: make([]byte, 0, size)} }

// Again repeats the message under another name. Long texts are quoted once this way.
func (w *Writer) Again(k string) {
	w.Key(k)
	w.B = append(w.B, w.B[w.from:w.to]...)
}

// Comma separates from what stands before. A string never ends in a bare bracket,
// so the last byte tells whether this is the first member.
func (w *Writer) Comma() {
	if n := len(w.B); n > 0 && w.B[n-1] != '{' && w.B[n-1] != '[' {
		w.B = append(w.B, ',')
	}
}

// Key writes a name; names are ours and need no escaping.
func (w *Writer) Key(k string) {
	w.Comma()
	w.B = append(w.B, '"')
	w.B = append(w.B, k...)
	w.B = append(w.B, '"', ':')
}

// Str writes a text.
func (w *Writer) Str(k, v string) {
	w.Key(k)
	w.B = AppendString(w.B, v)
}

// Num writes a whole number.
func (w *Writer) Num(k string, v int64) {
	w.Key(k)
	w.B = strconv.AppendInt(w.B, v, 10)
}

// Float writes a number.
func (w *Writer) Float(k string, v float64) {
	w.Key(k)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0 // JSON has no word for them
	}
	w.B = jsontext.AppendFloat(w.B, v, 64)
}

// Flag writes true or false.
func (w *Writer) Flag(k string, v bool) {
	w.Key(k)
	w.B = strconv.AppendBool(w.B, v)
}

// Lit writes a value that is JSON already, from our own source code.
func (w *Writer) Lit(k, v string) {
	w.Key(k)
	w.B = append(w.B, v...)
}

// Opt writes null for what was not given, which is not the same as an empty text.
func (w *Writer) Opt(k string, v *string) {
	if v == nil {
		w.Lit(k, "null")
		return
	}
	w.Str(k, *v)
}

// Strs writes null for an empty list, as the contract does.
func (w *Writer) Strs(k string, v []string) {
	if len(v) == 0 {
		w.Lit(k, "null")
		return
	}
	w.List(k, v)
}

// List writes texts, [] for none.
func (w *Writer) List(k string, v []string) {
	w.Open(k, '[')
	for _, s := range v {
		w.Comma()
		w.B = AppendString(w.B, s)
	}
	w.Shut(']')
}

// Raw writes foreign JSON on one line: a line break would end an SSE frame. Invalid JSON becomes
// a string, because it must not end the stream.
func (w *Writer) Raw(k string, v []byte) {
	w.Key(k)
	if !utf8.Valid(v) {
		v = bytes.ToValidUTF8(v, []byte("\uFFFD"))
	}
	at := len(w.B)
	b, err := jsontext.AppendFormat(w.B, v)
	if err != nil {
		b = AppendString(b[:at], string(v))
	}
	w.B = b
}

// Object is raw for what must be an object.
func (w *Writer) Object(k string, v []byte) {
	if KindOf(v) != '{' {
		w.Lit(k, "{}")
		return
	}
	w.Raw(k, v)
}

// Array is raw for what must be an array; other is written when it is none.
func (w *Writer) Array(k string, v []byte, other string) {
	if KindOf(v) != '[' {
		w.Lit(k, other)
		return
	}
	w.Raw(k, v)
}

// Open begins an object or array, Shut ends it. An empty name is the outermost one's
// or an element's.
func (w *Writer) Open(k string, bracket byte) {
	if k == "" {
		w.Comma()
	} else {
		w.Key(k)
	}
	w.B = append(w.B, bracket)
}

// Shut ends an object or array.
func (w *Writer) Shut(bracket byte) { w.B = append(w.B, bracket) }

// KindOf is the kind of a JSON value, 0 when it is none.
func KindOf(v []byte) jsontext.Kind {
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

// AppendString quotes s. Bytes that are not UTF-8 become U+FFFD: tools return what
// programs print, and a reader must get valid JSON whatever that is.
func AppendString(b []byte, s string) []byte {
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
