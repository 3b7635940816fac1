package knowledge

import (
	"regexp"
	"strings"
	"unicode"

	"deckhand/internal/clip"
)

// maxSentence bounds a problem that is told, and what is shown of a name.
const maxSentence = 300

// clean makes a text of anybody's bytes: characters that do not exist are
// replaced, and those that nobody sees are taken out, since people who looked
// at a file before they trusted it did not read them.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unseen(r) {
			return -1
		}
		return r
	}, text))
}

// unseen are control characters, marks that turn the direction of reading, and
// the tags of Unicode, in which a whole text can hide. The two joiners are not
// among them: some scripts cannot be written without.
func unseen(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7f, r == '\n', r == '\t', r == '\u200c', r == '\u200d':
		return false
	case r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
}

// cleanLine is a clean text on one line, cut after so many bytes.
func cleanLine(text string, most int) string {
	return clip.Bytes(clip.Line(clean(text)), most)
}

// borders are the tags of the blocks in which the model is told things.
var borders = regexp.MustCompile(`(?i)<(\s*/?\s*(?:REPOSITORY_INFO|REPOSITORY_INSTRUCTIONS|RUNTIME_INFORMATION|CONVERSATION_INSTRUCTIONS|SKILLS|SKILL|EXTRA_INFO)\b)`)

// inside is a text that cannot end the block it is put in, nor begin another.
func inside(text string) string { return borders.ReplaceAllString(text, "&lt;$1") }
