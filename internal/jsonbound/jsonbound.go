// Package jsonbound measures JSON before it is decoded, in one pass and without allocating. A short text can decode to
// many times its size, so the number of bytes says little about the memory that a body needs.
package jsonbound

import (
	"bytes"
	"errors"
)

// Limits are what a text may have at most. Zero is no limit.
type Limits struct {
	Values   int // values at any depth; the names in objects count too
	Depth    int // arrays and objects inside each other
	Elements int // of the outermost array, or members of the outermost object
}

// Why a text is refused.
var (
	ErrValues   = errors.New("too many values")
	ErrDepth    = errors.New("nested too deeply")
	ErrElements = errors.New("too many elements")
)

// Check counts the values in a text, and stops with an error at the first limit that it exceeds. It does not check that
// the text is valid: a decoder that stops at the first mistake has read no more values than were counted.
func Check(text []byte, most Limits) (values int, err error) {
	depth, elements := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n', ':':
			continue
		case ']', '}':
			depth--
			continue
		case ',':
			if depth == 1 {
				elements++
			}
			if most.Elements > 0 && elements > most.Elements {
				return values, ErrElements
			}
			continue
		case '"':
			i += quoted(text[i+1:])
		case '[', '{':
			if depth++; most.Depth > 0 && depth > most.Depth {
				return values, ErrDepth
			}
		default:
			i += bare(text[i+1:])
		}
		if values++; most.Values > 0 && values > most.Values {
			return values, ErrValues
		}
	}
	return values, nil
}

// bare is the length of the rest of a number, true, false or null.
func bare(text []byte) int {
	for i, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n', ':', ',', '"', '[', ']', '{', '}':
			return i
		}
	}
	return len(text)
}

// quoted is the length of a string up to and with the quote that ends it.
func quoted(text []byte) int {
	for i := 0; i < len(text); i++ {
		j := bytes.IndexByte(text[i:], '"')
		if j < 0 {
			break
		}
		end, slashes := i+j, 0
		for k := end - 1; k >= i && text[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		i = end
	}
	return len(text)
}
