// Package heredoc looks at the here-documents of a command.
package heredoc

import (
	"regexp"
	"strings"
	"sync"
)

// Complete reports whether all here-documents in a text are complete.
func Complete(text string) bool {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for _, m := range hereDoc().FindAllStringSubmatch(line, -1) {
			found := false
			for _, l := range lines[i+1:] {
				found = found || l == m[2] || m[1] == "-" && strings.TrimLeft(l, "\t") == m[2]
			}
			if !found {
				return false
			}
		}
	}
	return true
}

// hereDoc is compiled for the first text that may have one.
var hereDoc = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<<(-?)\s*["'\\]?([^\s"';&|<>()]*)`) })
