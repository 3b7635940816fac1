package terminal

import (
	"fmt"
	"strings"
)

// foot is what stands below the conversation while a person may type at any
// time: the line that is being written, what the agent does, and the line that
// the person types. It is wiped away before more of the conversation is
// written, and drawn again below it.
type foot struct {
	input *Input
	// part is the end of the conversation, a line that goes on.
	part string
	Foot
	// rows is how many lines are on the screen now, and shown what they were
	// drawn with; the cursor is in the last.
	rows  int
	shown string
}

// Foot says where the conversation stands.
type Foot struct {
	// State is said of the agent as long as nothing more exact is known, and
	// Prompt stands before what is typed.
	State, Prompt string
	// Busy says that the state takes time, Asks that it is a question to the person.
	Busy, Asks bool
}

// Type keeps a line for the person at the bottom, which needs a terminal.
func (d *Display) Type(in *Input) {
	d.fresh()
	d.foot = &foot{input: in, Foot: Foot{Prompt: ">"}}
	d.draw()
}

// Leave takes the bottom away. What follows is written as without it.
func (d *Display) Leave() {
	if d.foot == nil {
		return
	}
	d.words.end()
	var b strings.Builder
	d.wipe(&b)
	b.WriteString(d.foot.part)
	d.bare = d.foot.part == ""
	d.foot, d.doing = nil, ""
	d.put(b.String())
	d.fresh()
}

// SetFoot says where the conversation stands now.
func (d *Display) SetFoot(f Foot) {
	if d.foot == nil {
		return
	}
	d.foot.Foot = f
	if !f.Busy {
		d.doing = ""
	}
	d.draw()
}

// Draw shows what was typed, or draws the foot anew on a screen that has changed.
func (d *Display) Draw() {
	if d.foot != nil {
		d.foot.shown = ""
		d.draw()
	}
}

func (d *Display) draw() {
	if d.foot == nil {
		return
	}
	rows, n := d.rows()
	if rows == d.foot.shown && n == d.foot.rows {
		return
	}
	var b strings.Builder
	d.wipe(&b)
	d.below(&b)
	d.put(b.String())
}

// append writes more of the conversation above the bottom.
func (d *Display) append(text string) {
	var b strings.Builder
	d.wipe(&b)
	d.doing = ""
	f := d.foot
	at := strings.LastIndexByte(text, '\n') + 1
	if at > 0 {
		for line := range strings.Lines(f.part + text[:at]) {
			b.WriteString(d.folded(&b, strings.TrimSuffix(line, "\n")) + "\n")
		}
		f.part = ""
	}
	f.part = d.folded(&b, f.part+text[at:])
	d.bare = f.part == ""
	d.below(&b)
	d.put(b.String())
}

// folded writes the lines that a long one is broken into, and returns the last.
// Rows are counted, so the terminal must not break a line of the foot itself.
func (d *Display) folded(b *strings.Builder, line string) string {
	if strings.Contains(line, "\x1b") { // what has a look is never left unfinished
		return line
	}
	for columns(line) >= d.width() {
		n := breakAt(line, d.width()-1)
		b.WriteString(line[:n] + "\n")
		line = line[n:]
	}
	return line
}

// wipe takes away what is at the bottom.
func (d *Display) wipe(b *strings.Builder) {
	if n := d.foot.rows; n > 0 {
		b.WriteByte('\r')
		if n > 1 {
			fmt.Fprintf(b, "\x1b[%dA", n-1)
		}
		b.WriteString("\x1b[J")
	}
	d.foot.rows = 0
}

// below draws it.
func (d *Display) below(b *strings.Builder) {
	d.foot.shown, d.foot.rows = d.rows()
	b.WriteString(d.foot.shown)
}

// rows is what draws it and leaves the cursor where the person types, and how
// many lines that is.
func (d *Display) rows() (drawn string, n int) {
	var b strings.Builder
	f, width := d.foot, d.width()
	if f.part != "" {
		b.WriteString(f.part + "\n")
		n++
	}
	if text := or(d.waits(), Inline(f.State)); text != "" {
		look := dim
		switch {
		case f.Asks:
			look = yellow
		case f.Busy || d.doing != "":
			text = d.spinner() + " " + strings.TrimSpace(text)
		}
		b.WriteString(d.paint(look, clip(text, width-1)) + "\n")
		n++
	}
	prompt := clip(Inline(f.Prompt), width/2) + " "
	text, column := f.input.view(width - columns(prompt) - 1)
	b.WriteString(d.paint(bold, prompt) + text + "\r")
	if column += columns(prompt); column > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", column)
	}
	return b.String(), n + 1
}

// frames are what a spinner looks like, one after the other.
var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (d *Display) spinner() string { return frames[d.spin%len(frames)] }

// Tick moves the spinner on, if there is one.
func (d *Display) Tick() {
	d.spin++
	switch {
	case d.foot != nil && (d.foot.Busy || d.doing != ""):
		d.draw()
	case d.foot == nil && d.status:
		d.put("\r\x1b[K" + d.shownStatus())
	}
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
