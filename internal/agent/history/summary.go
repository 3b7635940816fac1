// Package history is what the model sees of a conversation: which events after restores, the texts of results, and the
// summaries that replace old messages. A summary is made by a model with a prompt, or is a digest that needs no model.
package history

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

// Intro is the prefix of every summary.
const Intro = "[From the system that runs you, not from the user] The history from here on was too long and is replaced by this summary:\n"

// PlainLimit is the maximum size in bytes of a summary made without a model.
const PlainLimit = 8 << 10

// Message is a message of the conversation. Summary is true for an earlier summary.
type Message struct {
	*llm.Message
	Summary bool
}

// Prompt returns the system prompt for a summary. asked is the user's request; nil for an automatic summary.
func Prompt(asked *session.CompactAsked) string {
	text := strings.TrimSpace(prompt)
	if asked == nil || asked.Instructions == "" {
		return text
	}
	return text + "\n\nThe user asked for this summary with these instructions. They say what matters most; keep to the headings:\n" + asked.Instructions
}

// WithRequests adds the conversation's pull requests to a summary that does not list them, because
// users ask about them long after they were opened.
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

// Digest joins messages into a text of about limit bytes. An earlier summary gets half of the space,
// because it covers most of the history. The other messages share the rest; the middle of a message
// that is too long is cut out.
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

// described returns the text of a message with its author.
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
