package session

import (
	"regexp"
	"strings"
	"unicode"
)

// DefaultTitle is the title until a better one is known.
func DefaultTitle(id ID) string {
	return "Conversation " + string(id[:min(5, len(id))])
}

// maxTitle is how long a title made from a message gets, maxTitleTurns after how many turns the model may be asked for one.
const maxTitle, maxTitleTurns = 50, 3

// titleInput is how many bytes of a message a title is made from: a message may be long, and its first line too.
const titleInput = 4 << 10

// TitleFrom makes a title of a first message: its first line, cut between words.
func TitleFrom(message string) string {
	message = strings.TrimSpace(message)
	message = strings.ToValidUTF8(message[:min(len(message), titleInput)], "")
	line, _, _ := strings.Cut(strings.TrimSpace(Visible(message)), "\n")
	line = strings.Join(strings.Fields(line), " ")
	r := []rune(line)
	if len(r) <= maxTitle {
		return line
	}
	cut := string(r[:maxTitle-1])
	if i := strings.LastIndexByte(cut, ' '); i > maxTitle/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,.;:") + "…"
}

// FirstWords makes the first words of a message the title of a conversation that has none, until the model or a person
// gives a better one. mask hides the owner's secrets; it is called only if there is such a title.
func (s State) FirstWords(text string, mask func(string) (string, error)) ([]Payload, error) {
	if s.Named || s.Exists() && s.Title != DefaultTitle(s.ID) || TitleFrom(text) == "" {
		return nil, nil
	}
	masked, err := mask(text)
	if err != nil {
		return nil, err
	}
	return []Payload{Titled{Title: TitleFrom(masked)}}, nil
}

// sequences are what terminals obey: CSI and OSC sequences.
var sequences = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x{9d})[^\x07\x1b\x{9c}]*(?:\x07|\x1b\\|\x{9c})`)

// Visible is a text without control characters and marks that change its direction or hide in it. The two joiners stay,
// because some scripts need them.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsSpace(r) {
			return ' '
		}
		if r != '\n' && r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return r
	}, sequences.ReplaceAllString(text, ""))
}
