package archtest

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pageLiteral is a word in the code of the web page, in quotes or as the key of an object.
type pageLiteral struct{ file, word string }

// pageLiterals finds words in the code of the web page. Texts and tests may have them.
func pageLiterals(t *tree, words []string) []pageLiteral {
	if len(words) == 0 {
		return nil
	}
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, regexp.QuoteMeta(word))
	}
	all := strings.Join(quoted, "|")
	literal := regexp.MustCompile("[\"'`](" + all + ")[\"'`]|(?m:^\\s*(" + all + "):)")
	var found []pageLiteral
	for _, p := range t.paths {
		if !within(p, "web/src") || within(p, "web/src/testing") || !slices.Contains([]string{".ts", ".svelte"}, path.Ext(p)) ||
			strings.HasSuffix(p, ".test.ts") || strings.HasSuffix(p, ".d.ts") {
			continue
		}
		text, err := fs.ReadFile(t.fsys, p)
		if err != nil {
			continue // somebody tidied up
		}
		for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
			found = append(found, pageLiteral{p, m[1] + m[2]})
		}
	}
	return found
}
