package terminal

import (
	"slices"
	"strings"

	"deckhand/internal/tool"
)

// change shows a change that a person decides about, all of it.
func (d *Display) change(v tool.View) {
	lines := replaced(v.Before, v.After)
	for _, l := range lines {
		d.line(changeLook(l), "  "+l)
	}
	d.shown = changes(lines)
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
