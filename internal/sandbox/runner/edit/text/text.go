// Package text decodes files to text and encodes them again, so that a changed file keeps
// its encoding.
package text

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Encoding is how a text is written down in bytes.
type Encoding int

// The encodings that are told apart. Those with a mark start with a byte order
// mark, which is no part of the text.
const (
	UTF8 Encoding = iota
	UTF8Mark
	UTF16LE
	UTF16BE
	Latin1 // what is none of the others, byte by byte
)

func (e Encoding) String() string {
	return [...]string{"UTF-8", "UTF-8 with a byte order mark", "UTF-16 (little endian)", "UTF-16 (big endian)", "Latin-1"}[e]
}

var marks = map[Encoding][]byte{UTF8Mark: {0xEF, 0xBB, 0xBF}, UTF16LE: {0xFF, 0xFE}, UTF16BE: {0xFE, 0xFF}}

// ErrBinary says that bytes are no text, or one that could not be written back
// as it was.
var ErrBinary = errors.New("not a text")

// Decode reads a text.
func Decode(b []byte) (string, Encoding, error) {
	for _, e := range []Encoding{UTF8Mark, UTF16LE, UTF16BE} {
		if !bytes.HasPrefix(b, marks[e]) {
			continue
		}
		s := e.decode(b[len(marks[e]):])
		if back, err := e.Encode(s); err != nil || !bytes.Equal(back, b) || strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
			break
		}
		return s, e, nil
	}
	switch {
	case bytes.IndexByte(b, 0) >= 0:
		return "", UTF8, ErrBinary
	case utf8.Valid(b):
		return string(b), UTF8, nil
	case bytes.ContainsFunc(b, control):
		return "", UTF8, ErrBinary
	}
	return Latin1.decode(b), Latin1, nil
}

// control is true for bytes that no text has.
func control(r rune) bool {
	return r < ' ' && !strings.ContainsRune("\b\t\n\v\f\r\x1b", r) || r == 0x7F
}

func (e Encoding) decode(b []byte) string {
	switch e {
	case UTF16LE, UTF16BE:
		if len(b)%2 != 0 {
			return "\x00"
		}
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = e.order().Uint16(b[2*i:])
		}
		return string(utf16.Decode(units))
	case Latin1:
		var s strings.Builder
		s.Grow(len(b) + len(b)/4)
		for _, c := range b {
			s.WriteRune(rune(c))
		}
		return s.String()
	}
	return string(b)
}

// order puts the two bytes of a unit together and apart.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func (e Encoding) order() order {
	if e == UTF16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Encode writes a text down. A character that the encoding does not have is an error.
func (e Encoding) Encode(s string) ([]byte, error) {
	out := bytes.Clone(marks[e])
	switch e {
	case UTF16LE, UTF16BE:
		for _, u := range utf16.Encode([]rune(s)) {
			out = e.order().AppendUint16(out, u)
		}
		return out, nil
	case Latin1:
		for _, r := range s {
			if r > 0xFF {
				return nil, fmt.Errorf("the file is encoded in %v, which does not have the character %q", e, r)
			}
			out = append(out, byte(r))
		}
		return out, nil
	}
	return append(out, s...), nil
}
