package terminal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// edit is what the editor may be told.
type edit struct {
	Command    string  `json:"command"`
	Path       string  `json:"path"`
	Text       *string `json:"file_text"`
	Old        *string `json:"old_str"`
	New        *string `json:"new_str"`
	InsertLine *int    `json:"insert_line"`
	Range      []int   `json:"view_range"`
	Risk       string  `json:"security_risk"`
}

// verb is what a command of the editor does.
func verb(command string) string {
	switch command {
	case "view":
		return "read"
	case "create":
		return "write"
	case "str_replace", "insert":
		return "edit"
	case "undo_edit":
		return "undo the edit of"
	}
	return command
}

// planned shows an edit that a person decides about as the change it would be,
// all of it. It is false for one that says more than that would show.
func (d *Display) planned(args json.RawMessage) bool {
	var e edit
	in := json.NewDecoder(strings.NewReader(string(args)))
	in.DisallowUnknownFields()
	if in.Decode(&e) != nil || e.Command == "" || e.Path == "" {
		return false
	}
	given := [...]bool{e.Text != nil, e.Old != nil, e.New != nil, e.InsertLine != nil, e.Range != nil}
	var lines []string
	where := ""
	switch {
	case e.Command == "create" && given == [...]bool{true, false, false, false, false}:
		lines = signed("+", *e.Text)
	case e.Command == "str_replace" && e.Old != nil && given == [...]bool{false, true, e.New != nil, false, false}:
		lines = replaced(*e.Old, deref(e.New))
	case e.Command == "insert" && given == [...]bool{false, false, true, true, false}:
		where = fmt.Sprintf(" after line %d", *e.InsertLine)
		lines = signed("+", *e.New)
	case (e.Command == "view" || e.Command == "undo_edit") && given == [5]bool{}:
	default:
		return false
	}
	d.line(cyan, "• "+Inline(verb(e.Command)+" "+e.Path+where))
	for _, l := range lines {
		d.line(changeLook(l), "  "+l)
	}
	d.shown = changes(lines)
	return true
}

// asShown says that a change came out as the person saw it before.
func (d *Display) asShown(diff string) bool {
	shown := d.shown
	d.shown = nil
	if len(shown) == 0 || !slices.Equal(shown, changes(strings.Split(Clean(diff), "\n"))) {
		return false
	}
	d.line(dim, "  done, as shown")
	return true
}

// changes are the lines that go or come.
func changes(diff []string) []string {
	return slices.DeleteFunc(slices.Clone(diff), func(l string) bool {
		return changeLook(l) == "" || strings.HasPrefix(l, "+++ ") || strings.HasPrefix(l, "--- ")
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// signed are the lines of a text behind a sign.
func signed(sign, text string) (out []string) {
	if text == "" {
		return nil
	}
	for l := range strings.SplitSeq(strings.TrimSuffix(Clean(text), "\n"), "\n") {
		out = append(out, sign+l)
	}
	return out
}

// openEnd stands behind a text after whose last line the next one goes on.
const openEnd = " \\ without a line end"

// replaced are the lines of a change: what is alike at both ends, and between
// them what goes and what comes.
func replaced(before, after string) []string {
	was, is := signed(" ", before), signed(" ", after)
	if strings.HasSuffix(before, "\n") != strings.HasSuffix(after, "\n") && before != "" && after != "" {
		if strings.HasSuffix(before, "\n") {
			is = append(is, openEnd)
		} else {
			was = append(was, openEnd)
		}
	}
	head := 0
	for head < min(len(was), len(is)) && was[head] == is[head] {
		head++
	}
	tail := 0
	for tail < min(len(was), len(is))-head && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	resigned := func(sign string, lines []string) (out []string) {
		for _, l := range lines {
			out = append(out, sign+l[1:])
		}
		return out
	}
	return slices.Concat(was[:head], resigned("-", was[head:len(was)-tail]), resigned("+", is[head:len(is)-tail]), was[len(was)-tail:])
}

// changeLook is how a line of a change looks.
func changeLook(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return ""
}
