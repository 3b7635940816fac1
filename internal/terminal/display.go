package terminal

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"deckhand/internal/session"
)

// Options say what a Display writes to.
type Options struct {
	Out io.Writer
	// Color allows colours and a status line that is written over. Without it
	// only plain lines are written.
	Color bool
	// Width is how many columns there are now; nil or 0 is no limit.
	Width func() int
	// Messages shows what the person said, too.
	Messages bool
	// Whole leaves nothing out, however long it is.
	Whole bool
	// OnStatus is told what is being waited for, instead of a status line; nil for the line.
	OnStatus func(text string)
}

// Display writes a conversation. It belongs to one goroutine.
type Display struct {
	Options
	// bare is true at the beginning of a line, status while the line holds
	// something that is to be written over: doing, and a spinner.
	bare, status bool
	doing        string
	since        time.Time
	spin         int
	// foot is what stands below everything; nil if nothing does.
	foot *foot
	// call is the answer that is being written and said what was shown of it;
	// done are the last calls that nothing more is shown of.
	call string
	said strings.Builder
	done [8]string
	at   int
	// tool is the tool call that runs, and output what it writes.
	tool   session.ToolCall
	output *output
	early  early
	asks   int
	// asking is true while a person is asked about tool. why is the reason for asking,
	// if it came before the call.
	asking bool
	why    string
	// reasoned is the call whose reason was shown.
	reasoned string
	// chosen has the user's overrides so far.
	chosen session.Overridden
	// shown are the lines of the change that a person was asked about.
	shown []string
	// words is what a model says, and last the kind of thing that was shown last.
	words prose
	last  block
	err   error
}

// block is a kind of thing that is set apart from others by an empty line.
type block int

const (
	nothing block = iota
	words         // of a person or a model
	aCall
	aResult
	aside
)

// New makes a Display.
func New(o Options) *Display {
	d := &Display{Options: o, bare: true}
	d.words.d = d
	return d
}

// apart begins something. Where there is a terminal, an empty line is before what
// is said and before a call that follows another one.
func (d *Display) apart(kind block) {
	if d.Width != nil && !d.Whole && d.last != nothing && (kind == words || kind == aCall && d.last == aResult) {
		d.fresh()
		d.write("\n")
	}
	d.last = kind
}

// The looks that text can have.
const (
	dim    = "2"
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint gives text a look. The text must be clean.
func (d *Display) paint(look, text string) string {
	if !d.Color || text == "" || look == "" {
		return text
	}
	return "\x1b[" + look + "m" + text + "\x1b[0m"
}

func (d *Display) width() int {
	if d.Whole {
		return math.MaxInt32
	}
	if d.Width != nil {
		if n := d.Width(); n > 0 {
			return max(n, 20)
		}
	}
	return 400
}

// most is how many lines are shown of what is usually cut after so many.
func (d *Display) most(usual int) int {
	if d.Whole {
		return math.MaxInt32
	}
	return usual
}

// write writes text that is clean.
func (d *Display) write(text string) {
	if text == "" {
		return
	}
	if d.foot != nil {
		d.append(text)
		return
	}
	d.clear()
	d.put(text)
	d.bare = strings.HasSuffix(text, "\n")
}

// put writes everything in one call, so that no partial screen is visible.
func (d *Display) put(text string) {
	if _, err := io.WriteString(d.Out, text); err != nil && d.err == nil {
		d.err = err
	}
}

// Err returns the first error of writing, nil if there was none.
func (d *Display) Err() error { return d.err }

// line writes whole lines of one look, on lines of their own.
func (d *Display) line(look, text string) {
	d.fresh()
	for l := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		d.write(d.paint(look, strings.TrimSuffix(l, "\n")) + "\n")
	}
}

// fresh ends a line that was begun.
func (d *Display) fresh() {
	d.words.end()
	d.clear()
	if !d.bare {
		d.write("\n")
	}
}

// clear takes the status line away.
func (d *Display) clear() {
	if d.status {
		d.put("\r\x1b[K")
		d.status, d.bare = false, true
	}
}

// Status shows what is being waited for, until something else is written.
func (d *Display) Status(text string) {
	if d.OnStatus != nil {
		d.OnStatus(strings.TrimSpace(Inline(text)))
		return
	}
	if !d.Color && d.foot == nil {
		return
	}
	if now := strings.TrimSpace(Inline(text)); now != d.doing || !d.status && d.foot == nil {
		d.doing, d.since = now, time.Now()
	}
	if d.foot != nil {
		d.draw()
		return
	}
	d.fresh()
	d.put(d.shownStatus())
	d.status, d.bare = true, false
}

func (d *Display) shownStatus() string {
	return d.paint(dim, clip(d.spinner()+" "+d.waits(), d.width()-1))
}

// waits is what is being waited for, and for how long if that is long.
func (d *Display) waits() string {
	if took := time.Since(d.since); d.doing != "" && took >= longWait {
		return d.doing + " · " + took.Truncate(time.Second).String()
	}
	return d.doing
}

// longWait is how long one waits before one wants to know for how long.
const longWait = 3 * time.Second

// Notice says something beside the conversation.
func (d *Display) Notice(text string) {
	d.apart(aside)
	d.line(dim, d.folds("· ", Clean(text)))
}

// Problem says that something went wrong.
func (d *Display) Problem(text string) {
	d.apart(aside)
	d.line(red, d.folds("! ", Clean(text)))
}

// folds breaks a text at spaces where the terminal would break it anywhere, and
// sets its lines below each other behind a mark.
func (d *Display) folds(mark, text string) string {
	var b strings.Builder
	room, next := d.width()-1-columns(mark), strings.Repeat(" ", columns(mark))
	if mark == "" {
		room, next = d.width()-3, "  "
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for d.Width != nil && columns(line) > room {
			n := breakAt(line, room)
			b.WriteString(mark + strings.TrimRight(line[:n], " ") + "\n")
			mark, line = next, line[n:]
		}
		b.WriteString(mark + line + "\n")
		mark = next
	}
	return b.String()
}

// Prompt asks for a line of input, which is echoed by the terminal itself.
func (d *Display) Prompt(text string) {
	if d.last == words {
		d.apart(words)
	}
	d.fresh()
	lines := strings.Split(strings.TrimSuffix(d.folds("", Clean(text)), "\n"), "\n")
	for i, l := range lines {
		lines[i] = d.paint(bold, l)
	}
	d.write(strings.Join(lines, "\n") + " ")
	d.bare = true // the person's own line end follows
}

// Break ends a line that the person left with a key instead of a line end, or on
// which such a key was echoed.
func (d *Display) Break() {
	if d.status {
		d.clear()
		return
	}
	d.write("\n")
}

// Summary says how it ended and what it took.
func (d *Display) Summary(state string, t session.Totals, took time.Duration) {
	parts := []string{state, count(d.asks, "model call")}
	if t.Input+t.CacheRead+t.Output > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out", thousands(t.Input+t.CacheRead+t.CacheWrite), thousands(t.Output)))
	}
	if t.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", t.Cost.Dollars()))
	}
	d.apart(words)
	d.line(bold, "— "+Clean(strings.Join(append(parts, shown(took)), " · ")))
}

// shown is a duration as people say it.
func shown(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
