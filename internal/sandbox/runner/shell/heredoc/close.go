package heredoc

import "strings"

// Close is text with a last line that takes its exit code. Without it a user's
// "set -e" would end the shell for a code that it lets pass in the text itself,
// as in "! true" or "false && true", and a trap of ERR would be run twice. It is left
// out where neither has a part, since it could complete a text that is not complete.
// What may have an unfinished here-document is left alone: the line would become a
// part of it.
func Close(text, last string, always bool) string {
	if strings.Contains(text, "<<") && !Complete(text) {
		return text
	}
	if strings.HasSuffix(strings.TrimSuffix(text, "\n"), `\`) {
		text += "\n\n" // the line goes on, with nothing; bash ends if the text ends there
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
