package history

import (
	"regexp"
	"strings"

	"deckhand/internal/session"
)

// thoughts are what some models write before their answer. The beginning may be part of the model's template, and the end
// beyond its limit.
var thoughts = regexp.MustCompile(`(?is)^.*</think(ing)?>|<think(ing)?>.*$`)

// Bare is what a model says when it is asked for a title, without what it puts around it.
func Bare(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(session.Visible(thoughts.ReplaceAllString(text, ""))), "\n")
	return strings.Trim(strings.TrimPrefix(text, "Title:"), " #*_`\"'“”«».")
}
