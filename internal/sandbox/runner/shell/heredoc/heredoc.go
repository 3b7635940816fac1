// Package heredoc looks at the here-documents of a command.
package heredoc

import (
	"regexp"
	"strings"
)

// Complete reports whether all here-documents in a text are complete.
func Complete(text string) bool {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for _, m := range hereDoc.FindAllStringSubmatch(line, -1) {
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

var hereDoc = regexp.MustCompile(`<<(-?)\s*["'\\]?([^\s"';&|<>()]*)`)
