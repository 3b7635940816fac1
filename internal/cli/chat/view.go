package chat

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"deckhand/internal/cli"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/cli/track"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// Text styles (SGR codes) of the lower part of the screen.
const (
	faint  = "2"
	bold   = "1"
	yellow = "33"
	green  = "32"
	cyan   = "36"
	invert = "7"
)

// paint styles a text, if colours are on.
func (d *drawn) paint(look, text string) string {
	if !d.colour || text == "" {
		return text
	}
	return "\x1b[" + look + "m" + text + "\x1b[0m"
}

// fit truncates a line to the width of the screen.
func (d *drawn) fit(text string) string { return ansi.Truncate(text, max(d.width-1, 1), "…") }

// wrap breaks a text into lines that fit the width of the screen.
func (d *drawn) wrap(look, text string) string {
	lines := strings.Split(ansi.Wordwrap(text, max(d.width-1, 1), ""), "\n")
	for i, line := range lines {
		lines[i] = d.paint(look, line)
	}
	return strings.Join(lines, "\n")
}

// welcome shows the folder or server, the model and the session.
func (d *drawn) welcome() {
	d.Notice("Deckhand · " + d.place() + " · " + d.modelName())
	switch {
	case d.id != "":
		d.Notice("session " + d.id[:min(8, len(d.id))] + ": " + strings.TrimSpace(d.title))
	case d.offer == nil:
		d.Notice("Type a task. /help shows commands and keys.")
	}
	if d.Shared {
		d.Notice("the server of this folder runs in another terminal, with that terminal's sandbox; the flags for the model, the budget and approvals are yours")
	}
	if d.Unconfined {
		d.Problem("no sandbox: commands run as you, with access to all your files and your network")
	}
}

// place returns the name of the folder, or the server.
func (d *drawn) place() string {
	if d.Elsewhere != "" {
		return d.Elsewhere
	}
	return cli.Short(d.Folder)
}

// View implements tea.Model.
func (d *drawn) View() tea.View {
	if d.ended {
		return tea.NewView("")
	}
	var lines []string
	if tail := d.out.String(); tail != "" {
		lines = append(lines, d.fit(tail))
	}
	d.input.Placeholder = d.hint()
	lines = append(lines, d.tasks()...)
	if text := d.activity(); text != "" {
		lines = append(lines, strings.Split(text, "\n")...)
	}
	lines = append(lines, d.queueLines()...)
	var v tea.View
	if d.menu.open() && d.menu.whole {
		lines = append(lines, d.menu.view(d)...)
	} else {
		lines = append(lines, d.menu.view(d)...)
		lines = append(lines, d.paint(faint, strings.Repeat("─", max(d.width, 1))))
		above := len(lines)
		lines = append(lines, d.input.View())
		if c := d.input.Cursor(); c != nil {
			c.Y += above
			v.Cursor = c
		}
	}
	lines = append(lines, d.statusLine())
	v.Content = strings.Join(lines, "\n")
	v.Content += strings.Repeat("\n", d.shrinks.pad(strings.Count(v.Content, "\n")+1, d.spin))
	d.heights[d.views%len(d.heights)] = strings.Count(v.Content, "\n") + 1
	d.views++
	return v
}

// shrinking delays a decrease of the view's height. If the cursor is below the new height, the renderer loses its
// position and leaves old lines on the screen. Blank lines below the view give the cursor time to move up.
type shrinking struct {
	tall, want int // the height on the screen, and the wanted height
	since      int // the tick at which the wanted height changed
}

// pad returns the number of blank lines to keep below a view of the given height.
func (s *shrinking) pad(height, tick int) int {
	if height != s.want {
		s.want, s.since = height, tick
	}
	if height >= s.tall || tick >= s.since+2 {
		s.tall = height
	}
	return s.tall - height
}

// hint returns the placeholder of the empty prompt.
func (d *drawn) hint() string {
	switch {
	case d.entry == anAnswer && d.question.Risk == int(session.RiskHigh):
		return "Type yes to approve, n to reject"
	case d.entry == anAnswer && d.approval().Pattern != "":
		return "Type y, n, e or a, and press Enter"
	case d.entry == anAnswer:
		return "Type y, n or e, and press Enter"
	case d.entry != aMessage:
		return ""
	case d.width < 50:
		return "Type a task, or /"
	case d.Working():
		return "Message the agent (read after this step)"
	}
	return "Describe a task, or type / for commands"
}

// pausedText says how to continue a paused agent.
const pausedText = "Paused. Enter continues, a message does too."

// maxTasks is the maximum number of tasks that are shown.
const maxTasks = 6

// tasks returns the agent's task list while it is in use, around the task in progress.
func (d *drawn) tasks() []string {
	if len(d.Tasks) == 0 || !d.Working() {
		return nil
	}
	done, active := 0, 0
	for i, t := range d.Tasks {
		if t.Done {
			done++
		} else if t.Active {
			active = i
		}
	}
	room := min(maxTasks, max(1, d.height-8))
	from := max(0, min(active-1, len(d.Tasks)-room))
	out := []string{d.paint(faint, fmt.Sprintf("Tasks %d/%d", done, len(d.Tasks)))}
	for _, t := range d.Tasks[from:min(len(d.Tasks), from+room)] {
		mark, look := "[ ] ", faint
		switch {
		case t.Done:
			mark, look = "[x] ", green
		case t.Active:
			mark, look = "[>] ", yellow
		}
		out = append(out, d.paint(look, d.fit("  "+mark+terminal.Inline(t.Title))))
	}
	return out
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// activity returns the current activity, or the question.
func (d *drawn) activity() string {
	switch d.entry {
	case anAnswer:
		look := yellow
		if d.question.Risk == int(session.RiskHigh) {
			look = invert
		}
		return d.wrap(look, d.questionText()+":") // not truncated, so that all answers are visible
	case aReason:
		return d.paint(yellow, d.fit("Reason for the agent (Enter to end the turn):"))
	case aPlan:
		return d.paint(yellow, d.fit("Edit the plan (Enter approves it, Esc goes back):"))
	case aQueued:
		return d.paint(yellow, d.fit("Edit the queued message (Enter saves it, Esc goes back):"))
	case aYes:
		return d.wrap(invert, terminal.SureText)
	case newCall:
		return d.paint(yellow, d.fit("Edit the call (Enter to run it, Esc to go back):"))
	}
	switch {
	case d.id != "" && !d.present():
		return d.paint(faint, "loading the session")
	case d.Working():
		text, _ := track.Word(d.State)
		if d.Compacting {
			text = "compacting"
		}
		if d.doing != "" {
			text = d.doing
		}
		if took := time.Since(d.Since); took >= time.Second {
			text += " · " + took.Truncate(time.Second).String()
		}
		if d.Pausing {
			text += " · pausing after this step"
		} else {
			text += " · Esc interrupts"
		}
		return d.paint(cyan, d.fit(spinner[d.spin%len(spinner)]+" "+text))
	case d.hasPlan():
		if d.width < 60 {
			return d.paint(yellow, d.fit("Plan: /plan approve, edit or off"))
		}
		return d.wrap(yellow, prompt.PlanReady)
	case d.State == session.AgentPaused:
		return d.paint(yellow, d.fit(pausedText))
	case d.State == session.AgentStopped && d.id != "":
		return d.paint(faint, d.fit("Stopped. The next message starts the agent again."))
	}
	return ""
}

// statusLine returns the last line of the screen.
func (d *drawn) statusLine() string {
	parts := []string{d.modelName(), d.costText(), "context " + d.contextText(), d.modeText()}
	if d.width >= 100 {
		parts = append(parts, d.place())
	}
	if d.id == "" || d.Used == 0 || ansi.StringWidth(strings.Join(parts, " · ")) >= d.width { // the mode matters more than the context
		parts = slices.Delete(parts, 2, 3)
	}
	return d.paint(faint, d.fit(strings.Join(parts, " · ")))
}
