package agent

import "strings"

// maxTitle is how long a title made from a message gets.
const maxTitle = 50

// TitleFrom makes a title of a first message: its first line, cut between words.
func TitleFrom(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
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
