package knowledge

import (
	"regexp"
	"strings"
	"unicode"

	"deckhand/internal/clip"
)

// maxSentence limits the message of a problem, and a displayed name.
const maxSentence = 300

// clean returns valid text: invalid characters are replaced, and invisible ones are
// removed, because people who reviewed the file did not see them.
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

// unseen reports control characters, marks that change the text direction, and Unicode
// tags, which can hide a whole text. The two joiners are not included, because some
// scripts need them.
func unseen(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7f, r == '\n', r == '\t', r == '\u200c', r == '\u200d':
		return false
	case r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
}

// cleanLine returns clean text on one line, truncated to a number of bytes.
func cleanLine(text string, most int) string {
	return clip.Bytes(clip.Line(clean(text)), most)
}

// borders are the tags of the blocks in a prompt.
var borders = regexp.MustCompile(`(?i)<(\s*/?\s*(?:REPOSITORY_INFO|REPOSITORY_INSTRUCTIONS|RUNTIME_INFORMATION|CONVERSATION_INSTRUCTIONS|SKILLS|SKILL|EXTRA_INFO)\b)`)

// inside returns text that can neither close its block nor open another.
func inside(text string) string { return borders.ReplaceAllString(text, "&lt;$1") }
