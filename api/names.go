package api

import (
	"strings"
	"unicode/utf8"
)

// File names are bytes, but JSON contains only text. A name that is valid UTF-8 is sent
// unchanged. Any other byte is sent as %XX, and a percent sign that could be mistaken for
// such an escape as %25, so that every name has exactly one encoding.

const hexDigits = "0123456789ABCDEF"

// EncodeName returns the encoding of a name or path for JSON.
func EncodeName(name []byte) string {
	var b strings.Builder
	b.Grow(len(name))
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRune(name[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			b.Write([]byte{'%', hexDigits[name[i]>>4], hexDigits[name[i]&15]})
			n = 1
		case r == '%' && escape(string(name[i:min(i+3, len(name))])) >= 0:
			b.WriteString("%25")
		default:
			b.Write(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

// DecodeName returns the name or path with this encoding.
func DecodeName(text string) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if c := escape(text[i:min(i+3, len(text))]); c >= 0 {
			out = append(out, byte(c))
			i += 2
			continue
		}
		out = append(out, text[i])
	}
	return out
}

// escape returns the byte of an escape at the start of s, or -1. Only invalid bytes and
// percent signs are escaped.
func escape(s string) int {
	if len(s) != 3 || s[0] != '%' {
		return -1
	}
	high, low := digit(s[1]), digit(s[2])
	if high < 0 || low < 0 {
		return -1
	}
	if c := high<<4 | low; c >= 0x80 || c == '%' {
		return c
	}
	return -1
}

func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
