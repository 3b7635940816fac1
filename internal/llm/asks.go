package llm

import "strings"

// Asks says whether an answer ends with a question to the user: whether its last paragraph asks something. Code asks nothing.
func Asks(answer string) bool {
	last := strings.TrimSpace(answer)
	if strings.HasSuffix(last, "```") {
		return false
	}
	if i := strings.LastIndex(last, "\n\n"); i >= 0 {
		last = last[i:]
	}
	for line := range strings.Lines(last) {
		line = strings.TrimRight(line, " \t\r\n*_`\"')”’")
		if strings.HasSuffix(line, "?") || strings.HasSuffix(line, "？") {
			return true
		}
	}
	return false
}
