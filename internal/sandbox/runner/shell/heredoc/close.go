package heredoc

import "strings"

// Close returns text with a last line that takes its exit code. Without this line, a
// user's "set -e" would end the shell for a code that it allows within the text, as in
// "! true" or "false && true", and a trap of ERR would run twice. Close leaves the line
// out if neither applies, because it could complete an incomplete text. It also leaves
// text alone that may have an unfinished here-document: the line would become a part
// of the document.
func Close(text, last string, always bool) string {
	if strings.Contains(text, "<<") && !Complete(text) {
		return text
	}
	if strings.HasSuffix(strings.TrimSuffix(text, "\n"), `\`) {
		text += "\n\n" // continues the line with nothing: bash would end if the text ended there
	}
	end := strings.TrimSpace(text)
	if strings.HasSuffix(end, "|") || strings.HasSuffix(end, "&&") || !always && !strings.Contains(text, "set -") && !strings.Contains(text, "errexit") {
		return text
	}
	if strings.Contains(text, "eval") {
		text += "\n" // after a syntax error in an eval, bash takes the next line for a part of a command
	}
	return text + "\n" + last
}
