package tool

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path shows a path of the sandbox on one line. One that is not a plain text is quoted.
func Path(path []byte) string {
	if !utf8.Valid(path) || strings.ContainsFunc(string(path), func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(string(path))
	}
	return string(path)
}
