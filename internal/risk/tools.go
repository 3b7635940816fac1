package risk

import (
	"path"
	"slices"
	"strings"
)

// bash rates a call of the shell, or input to what runs in it.
func (a arguments) bash() (Rating, string) {
	text, ok := a.text("command")
	if !ok {
		return Unknown, "The command is missing."
	}
	if a.yes("is_input") {
		return input(text)
	}
	if strings.TrimSpace(text) == "" {
		return Low, "It waits for more output."
	}
	return Shell(text)
}

// input rates what is typed into a program that runs. What that program makes of
// a text is not known here.
func input(text string) (Rating, string) {
	switch strings.TrimSpace(text) {
	case "":
		return Low, "It waits for more output, or presses Enter."
	case "C-c", "C-d", "C-z", "C-\\", "q", "y", "n":
		return Low, "It presses a key in the program that runs."
	}
	return Unknown, "It types something into the program that runs."
}

// editor rates looking at a file and changing one.
func (a arguments) editor(tool string) (Rating, string) {
	name, ok := a.text("path")
	if !ok || name == "" {
		return Unknown, "The file path is missing."
	}
	if strings.ContainsFunc(name, disguises) {
		return High, "The file's name holds invisible or control characters."
	}
	if what, _ := a.text("command"); what == "view" && tool == "str_replace_editor" {
		if secrets(name) {
			return Medium, "It reads a file that may hold credentials."
		}
		return Low, "It only reads."
	}
	if why := sensitive(name); why != "" {
		return High, why
	}
	return Medium, "It changes a file."
}

func (a arguments) fetch() (Rating, string) {
	target, ok := a.text("url")
	if !ok {
		return Unknown, "The address is missing."
	}
	return address(target)
}

// maxSearch is how long a question to a search engine may be.
const maxSearch = 400

func (a arguments) search() (Rating, string) {
	query, ok := a.text("query")
	switch {
	case !ok:
		return Unknown, "The question is missing."
	case len(query) > maxSearch:
		return Medium, "It asks a search engine a question that is long enough to carry data away."
	}
	return Low, "It only asks a search engine."
}

// issue rates reading one. That of the conversation's own repository needs no name.
func (a arguments) issue() (Rating, string) {
	if _, named := a["repo_name"]; named {
		return Medium, "It reads in a repository that it names, with the user's token."
	}
	return Low, "It only reads."
}

// What the functions of the browser's little language do.
var (
	browserReads = []string{"noop", "scroll", "go_back", "go_forward", "get_text", "screenshot", "hover", "focus", "tab_focus", "new_tab", "tab_close"}
	browserActs  = []string{"click", "dblclick", "fill", "clear", "press", "select_option", "drag_and_drop", "mouse_click", "keyboard_type"}
)

// browser rates a sequence of browser functions; the worst counts.
func (a arguments) browser() (Rating, string) {
	code, ok := a.text("code")
	if !ok {
		return Unknown, "The browser action is missing."
	}
	calls, ok := browserCalls(code)
	if !ok {
		return Unknown, "The browser action cannot be parsed."
	}
	v := verdict{}
	for _, c := range calls {
		switch {
		case c.name == "goto" || c.name == "new_tab" && c.first != "":
			v.add(address(c.first))
		case slices.Contains(browserReads, c.name):
			v.add(Low, "It only reads the page.")
		case slices.Contains(browserActs, c.name):
			v.add(Medium, "It does something on a page, and may send what is typed.")
		case c.name == "upload_file":
			v.add(High, "It sends a file to a web page.")
		default:
			v.add(Unknown, "It uses a function of the browser that the rules do not know.")
		}
	}
	if v.reason == "" {
		return Low, "It only reads the page."
	}
	return v.rating, v.reason
}

type browserCall struct{ name, first string }

// browserCalls finds the names of the functions in a sequence of calls, and the
// first argument of each if it is a string.
func browserCalls(code string) ([]browserCall, bool) {
	var out []browserCall
	for rest := strings.TrimLeft(code, " \t\n;"); rest != ""; rest = strings.TrimLeft(rest, " \t\n;") {
		name, after, ok := strings.Cut(rest, "(")
		name = strings.TrimSpace(name)
		if !ok || !identifier.MatchString(name) {
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

// within reports whether a path lies in a folder, without any way out of it.
func within(folder, name string) bool {
	return path.IsAbs(name) && path.Clean(name) == name && strings.HasPrefix(name, folder+"/")
}
