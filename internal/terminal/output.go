package terminal

import (
	"strings"
)

// How many lines of an output are shown as they come, and how many of its end
// when there were more.
const (
	headLines = 12
	tailLines = 8
	// keptOutput bounds what is remembered for comparing it with the result.
	keptOutput = 1 << 20
)

// output shows what a tool writes: the first lines as they come, then only the last ones.
type output struct {
	d     *Display
	raw   strings.Builder
	seen  int64 // how many bytes came
	line  strings.Builder
	lines int
	tail  []string
}

// add shows more of it.
func (o *output) add(text string) {
	o.seen += int64(len(text))
	if o.raw.Len() < keptOutput {
		o.raw.WriteString(text)
	}
	for {
		line, rest, whole := strings.Cut(text, "\n")
		if o.line.Len() < keptOutput {
			o.line.WriteString(line)
		}
		if !whole {
			return
		}
		o.flush()
		text = rest
	}
}

// flush takes the present line as a whole one.
func (o *output) flush() {
	text := strings.TrimRight(Clean(strings.TrimRight(o.line.String(), "\r")), "\n")
	o.line.Reset()
	for line := range strings.SplitSeq(text, "\n") {
		if o.lines++; o.lines <= o.d.most(headLines) {
			o.show(line)
			continue
		}
		if o.tail = append(o.tail, line); len(o.tail) > tailLines {
			o.tail = o.tail[1:]
		}
		o.d.Status("  … " + line)
	}
}

func (o *output) show(line string) {
	const indent = "  "
	o.d.line(dim, indent+clip(line, o.d.width()-len(indent)-1))
}

// finish shows what the result has beyond what came while it was made.
func (o *output) finish(result string) {
	live := o.raw.String()
	if rest, ok := strings.CutPrefix(result, live); ok {
		o.add(rest)
	} else if rest, ok := strings.CutPrefix(plain(result), plain(live)); ok {
		o.add(rest)
	}
	if o.line.Len() > 0 {
		o.flush()
	}
	if hidden := o.lines - o.d.most(headLines) - len(o.tail); hidden > 0 {
		o.d.line(dim, "  … "+count(hidden, "line")+" not shown")
	}
	for _, line := range o.tail {
		o.show(line)
	}
}

// plain is an output as it is compared: programs at a terminal end lines in another way.
func plain(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
