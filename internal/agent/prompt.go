package agent

import (
	_ "embed"
	"strings"
)

//go:embed prompt.md
var prompt string

// System is what the model is told before anything else. language is a tag
// such as de or pt-BR; empty means that of the user's messages.
func System(language string) string {
	s := strings.TrimSpace(prompt)
	if language != "" {
		s += "\nAnswer in the language with the tag " + language + "."
	}
	return s
}
