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
	// state is said of the agent as long as nothing more exact is known, and
	// prompt stands before what is typed.
	state, prompt string
	busy          bool
	// rows is how many lines are on the screen now; the cursor is in the last.
	rows int
}

// Type keeps a line for the person at the bottom. It needs colours and a width.
func (d *Display) Type(in *Input) {
	d.fresh()
	d.foot = &foot{input: in, prompt: "> "}
	d.draw()
}

// Leave takes the bottom away. What follows is written as without it.
func (d *Display) Leave() {
	if d.foot == nil {
		return
	}
	var b strings.Builder
	d.wipe(&b)
	b.WriteString(d.foot.part)
	d.bare = d.foot.part == ""
	d.foot, d.doing = nil, ""
	d.put(b.String())
	d.fresh()
}

// Foot says what the agent does, whether that takes time, and what the person is asked.
func (d *Display) Foot(state, prompt string, busy bool) {
	if d.foot == nil {
		return
	}
	f := d.foot
	f.state, f.prompt, f.busy = Inline(state), Inline(prompt)+" ", busy
	if !busy {
		d.doing = ""
	}
	d.draw()
}

// Draw shows what was typed.
func (d *Display) Draw() { d.draw() }

func (d *Display) draw() {
	if d.foot == nil {
		return
	}
	var b strings.Builder
	d.wipe(&b)
	d.rows(&b)
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
		b.WriteString(f.part + text[:at])
		f.part = ""
	}
	f.part += text[at:]
	for columns(f.part) >= d.width() { // rows must be counted, so the terminal must not break lines itself
		n := breakAt(f.part, d.width()-1)
		b.WriteString(f.part[:n] + "\n")
		f.part = f.part[n:]
	}
	d.bare = f.part == ""
	d.rows(&b)
	d.put(b.String())
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

// rows draws it, and leaves the cursor where the person types.
func (d *Display) rows(b *strings.Builder) {
	f, width := d.foot, d.width()
	if f.part != "" {
		b.WriteString(f.part + "\n")
		f.rows++
	}
	if text := or(d.doing, f.state); text != "" {
		if f.busy || d.doing != "" {
			text = d.spinner() + " " + strings.TrimSpace(text)
		}
		b.WriteString(d.paint(dim, clip(text, width-1)) + "\n")
		f.rows++
	}
	prompt := clip(f.prompt, max(width*2/3, 4))
	text, column := f.input.view(width - columns(prompt) - 1)
	b.WriteString(d.paint(bold, prompt) + text + "\r")
	if column += columns(prompt); column > 0 {
		fmt.Fprintf(b, "\x1b[%dC", column)
	}
	f.rows++
}

// frames are what a spinner looks like, one after the other.
var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (d *Display) spinner() string { return frames[d.spin%len(frames)] }

// Tick moves the spinner on, if there is one.
func (d *Display) Tick() {
	d.spin++
	switch {
	case d.foot != nil && (d.foot.busy || d.doing != ""):
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
