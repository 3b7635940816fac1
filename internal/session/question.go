package session

import "strings"

// ReasonQuestion is the reason of a turn that ended with a question to the user.
const ReasonQuestion = "question"

// Asks is ReasonQuestion for an answer whose last paragraph asks something, and "" for others. Lists show which
// conversations wait for a person, and which are done.
func Asks(answer string) string {
	last := strings.TrimSpace(answer)
	if strings.HasSuffix(last, "```") { // code asks nothing
		return ""
	}
	if i := strings.LastIndex(last, "\n\n"); i >= 0 {
		last = last[i:]
	}
	for line := range strings.Lines(last) {
		line = strings.TrimRight(line, " \t\r\n*_`\"')”’")
		if strings.HasSuffix(line, "?") || strings.HasSuffix(line, "？") {
			return ReasonQuestion
		}
	}
	return ""
}
