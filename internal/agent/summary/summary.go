// Package summary makes the texts that replace a stretch of a conversation: the prompt for a model that summarises it, and
// a digest that needs no model.
package summary

import (
	_ "embed"
	"fmt"
	"strings"

	"deckhand/internal/clip"
	"deckhand/internal/gitprovider"
	"deckhand/internal/llm"
	"deckhand/internal/session"
)

//go:embed prompt.md
var prompt string

// Intro stands before every summary.
const Intro = "[From the system that runs you, not from the user] The history from here on was too long and is replaced by this summary:\n"

// PlainLimit is how many bytes a summary without a model may have.
const PlainLimit = 8 << 10

// Message is a message of the conversation. Summary says that it is an earlier summary.
type Message struct {
	*llm.Message
	Summary bool
}

// Prompt is the system prompt for a summary. asked is the user's request for it, nil if there is none.
func Prompt(asked *session.CompactAsked) string {
	text := strings.TrimSpace(prompt)
	if asked == nil || asked.Instructions == "" {
		return text
	}
	return text + "\n\nThe user asked for this summary with these instructions. They say what matters most; keep to the headings:\n" + asked.Instructions
}

// WithRequests makes sure that a summary names the conversation's pull requests:
// what has become of them is asked for long after they were opened.
func WithRequests(text string, all []session.RequestOpened) string {
	var lines []string
	for _, r := range all {
		if line := fmt.Sprintf("- %s: %s (%s into %s)", gitprovider.RequestName(r.Provider, r.Repository, r.Number), r.URL, r.Source, r.Target); !strings.Contains(text, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return text
	}
	return strings.TrimSpace(text + "\n\nPull requests of this conversation:\n" + strings.Join(lines, "\n"))
}

// Digest writes messages down one after the other in at most limit bytes, more
// or less. A summary of what came before them gets half of it, for it stands for
// the most; each other gets its share, and what is too long loses its middle.
func Digest(old []Message, limit int) string {
	var b strings.Builder
	if len(old) > 0 && old[0].Summary {
		b.WriteString(clip.Middle(described(old[0]), limit/2) + "\n")
		old, limit = old[1:], limit-b.Len()
	}
	share := max(limit/max(len(old), 1), 80)
	if most := max(limit/share, 1); len(old) > most {
		fmt.Fprintf(&b, "[%d older messages are left out]\n", len(old)-most)
		old = old[len(old)-most:]
	}
	for _, m := range old {
		b.WriteString(clip.Middle(described(m), share-1) + "\n")
	}
	return b.String()
}

// described is a message in words, with who it is of.
func described(m Message) string {
	text := m.Text
	for _, c := range m.Calls {
		text += fmt.Sprintf("\n[calls %s %s]", c.Name, c.Args)
	}
	if n := len(m.Images); n > 0 {
		text += fmt.Sprintf("\n[with %d images]", n)
	}
	switch {
	case m.Summary:
		return "[Summary of what came before] " + strings.TrimPrefix(text, Intro)
	case m.Role == llm.User:
		return "[User] " + text
	case m.Role == llm.Assistant:
		return "[Agent] " + text
	}
	return "[Result] " + text
}
