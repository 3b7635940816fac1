package browse

import (
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/risk"
)

// What the functions of the browser's little language do.
var (
	browserReads = []string{"noop", "scroll", "go_back", "go_forward", "get_text", "screenshot", "hover", "focus", "tab_focus", "new_tab", "tab_close"}
	browserActs  = []string{"click", "dblclick", "fill", "clear", "press", "select_option", "drag_and_drop", "mouse_click", "keyboard_type"}
)

// rate rates a sequence of browser functions; the worst counts.
func rate(a risk.Arguments) (risk.Rating, string) {
	code, ok := a.Text("code")
	if !ok {
		return risk.Unknown, "The browser action is missing."
	}
	calls, ok := browserCalls(code)
	if !ok {
		return risk.Unknown, "The browser action cannot be parsed."
	}
	worst, why := risk.Low, ""
	add := func(r risk.Rating, reason string) {
		if why == "" || r.Worse(worst) {
			worst, why = r, reason
		}
	}
	for _, c := range calls {
		switch {
		case c.name == "goto" || c.name == "new_tab" && c.first != "":
			add(risk.Address(c.first))
		case slices.Contains(browserReads, c.name):
			add(risk.Low, "It only reads the page.")
		case slices.Contains(browserActs, c.name):
			add(risk.Medium, "It interacts with a page, and may submit input.")
		case c.name == "upload_file":
			add(risk.High, "It sends a file to a web page.")
		default:
			add(risk.Unknown, "It uses an unknown function of the browser.")
		}
	}
	if why == "" {
		return risk.Low, "It only reads the page."
	}
	return worst, why
}

var functionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

type browserCall struct{ name, first string }

// browserCalls finds the names of the functions in a sequence of calls, and the
// first argument of each if it is a string.
func browserCalls(code string) ([]browserCall, bool) {
	var out []browserCall
	for rest := strings.TrimLeft(code, " \t\n;"); rest != ""; rest = strings.TrimLeft(rest, " \t\n;") {
		name, after, ok := strings.Cut(rest, "(")
		name = strings.TrimSpace(name)
		if !ok || !functionName.MatchString(name) {
			return nil, false
		}
		first, after, ok := browserArguments(after)
		if !ok {
			return nil, false
		}
		out = append(out, browserCall{name, first})
		rest = after
	}
	return out, true
}

// browserArguments skips to the closing bracket, past strings that may hold one.
func browserArguments(s string) (first, rest string, ok bool) {
	depth, got := 1, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'', '"':
			from := i + 1
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			if i >= len(s) {
				return "", "", false
			}
			if !got {
				first, got = s[from:i], true
			}
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return first, s[i+1:], true
			}
		case '#', '\n':
			return "", "", false
		}
	}
	return "", "", false
}
