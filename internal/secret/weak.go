package secret

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// MinMasked is the minimum length of a masked value: masking every "1" or "true" would
// destroy unrelated text.
const MinMasked = 8

// fewest is the minimum number of different characters in a masked value: a line of
// dashes is not a secret.
const fewest = 4

//go:embed common.txt
var commonText string

// AddCommon adds a word that programs read. It must be called before anything is masked.
func AddCommon(word string) { commonText += "\n" + word }

// common returns the words of common.txt and the added ones, in lower case.
var common = sync.OnceValue(func() []string {
	var out []string
	for line := range strings.Lines(commonText) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, strings.Fields(strings.ToLower(line))...)
		}
	}
	return out
})

// commonAll returns all words in one string, for substring searches.
var commonAll = sync.OnceValue(func() string { return strings.Join(common(), " ") })

// Weakness says why a value is not masked, in words that complete "It is not masked,
// because it", or returns "" if it is masked. A weak value can occur in any text by
// chance, and masking it would change words that programs read.
func Weakness(value string) string {
	switch {
	case len(value) < MinMasked:
		return "is shorter than " + strconv.Itoa(MinMasked) + " characters"
	case value == Mask:
		return "is the mask itself"
	case distinct(value) < fewest:
		return "has fewer than " + strconv.Itoa(fewest) + " different characters"
	case isCommon(strings.ToLower(value)):
		return "is a common word or path"
	}
	return ""
}

func distinct(s string) int {
	var seen [256]bool
	n := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			n++
		}
	}
	return n
}

// isCommon reports whether a value is a part of a common word, or a path of such words.
func isCommon(value string) bool {
	if !strings.ContainsAny(value, " \t\r\n") && strings.Contains(commonAll(), value) {
		return true
	}
	path, ok := strings.CutPrefix(value, "/")
	if !ok {
		return false
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if !strings.Contains(" "+commonAll()+" ", " "+part+" ") {
			return false
		}
	}
	return true
}
