package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"deckhand/internal/session"
)

// Bounds of what is shown of a call.
const (
	maxCommand = 20 // lines
	maxDiff    = 40
	maxValue   = 120 // characters of an argument
)

// arguments are those that the tools below have, by the names that models know.
type arguments struct {
	Command  string `json:"command"`
	IsInput  any    `json:"is_input"`
	Path     string `json:"path"`
	Thought  string `json:"thought"`
	Message  string `json:"message"`
	TaskList []struct {
		Title  string `json:"title"`
		Status string `json:"status"`
	} `json:"task_list"`
}

// called shows what is about to be done.
func (d *Display) called(p session.ToolCalled) {
	d.tool, d.output, d.shown, d.asking = p.ToolCall, &output{d: d}, nil, p.Awaits
	if p.Name != "finish" && p.Name != "think" { // which are words, and begin as such
		d.apart(aCall)
	}
	d.fresh()
	if p.Awaits {
		d.whole(p.ToolCall)
		why := d.why
		d.why = ""
		d.asked(session.ApprovalAsked{Reason: why})
		return
	}
	d.head(p.ToolCall)
}

// whole shows a call without leaving anything out: a person decides about it.
func (d *Display) whole(c session.ToolCall) {
	var a arguments
	if json.Unmarshal(c.Args, &a) == nil && c.Name == "execute_bash" {
		d.command(a, math.MaxInt)
		return
	}
	if c.Name == "str_replace_editor" && d.planned(c.Args) {
		return
	}
	d.title(c.Name, "")
	var b bytes.Buffer
	if json.Indent(&b, c.Args, "  ", "  ") != nil {
		b.Reset()
		b.Write(c.Args)
	}
	d.line("", "  "+Clean(b.String()))
}

// head shows a call in short.
func (d *Display) head(c session.ToolCall) {
	var a arguments
	_ = json.Unmarshal(c.Args, &a)
	switch c.Name {
	case "execute_bash":
		d.command(a, d.most(maxCommand))
	case "think":
		d.thought(a.Thought)
	case "finish":
	case "task_tracker":
		d.tasks(a)
	case "str_replace_editor":
		d.title(verb(a.Command)+" "+a.Path, "")
	default:
		d.title(c.Name, inline(c.Args, d.most(maxValue)))
	}
}

// title is the first line of a call.
func (d *Display) title(what, more string) {
	text := "• " + Inline(what)
	if more == "" {
		d.line(cyan, clip(text, d.width()-1))
		return
	}
	line := d.paint(cyan, text)
	if room := d.width() - 2 - columns(text); room > 8 {
		line += " " + d.paint(dim, clip(Inline(more), room-1))
	}
	d.fresh()
	d.write(line + "\n")
}

func (d *Display) command(a arguments, most int) {
	mark := "$ "
	if fmt.Sprint(a.IsInput) == "true" {
		mark = "< "
	}
	lines := strings.Split(strings.TrimRight(Clean(a.Command), "\n"), "\n")
	for i, l := range lines {
		if i == most {
			d.line(dim, "  … "+count(len(lines)-i, "more line"))
			return
		}
		d.line(cyan, mark+l)
		mark = "  "
	}
}

func (d *Display) tasks(a arguments) {
	if a.Command != "plan" || len(a.TaskList) == 0 {
		d.title("tasks", a.Command)
		return
	}
	d.title("tasks", "")
	for _, t := range a.TaskList {
		mark, look := "[ ] ", ""
		switch t.Status {
		case "done":
			mark, look = "[x] ", green
		case "in_progress":
			mark, look = "[>] ", yellow
		}
		d.line(look, "  "+mark+clip(Inline(t.Title), d.width()-7))
	}
}

// inline shows arguments of which nothing is known, each with so many characters at most.
func inline(raw json.RawMessage, most int) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return string(raw)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := string(all[name])
		var text string
		if json.Unmarshal(all[name], &text) == nil {
			value = text
		}
		if r := []rune(value); len(r) > most {
			value = string(r[:most]) + "…"
		}
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, " ")
}

// details are what tools say beside their text.
type details struct {
	ExitCode *int    `json:"exit_code"`
	Diff     *string `json:"diff"`
	Suffix   string  `json:"suffix"`
}

// returned shows what became of the call.
func (d *Display) returned(p session.ToolReturned) {
	out := d.output
	if out == nil || d.tool.ID != p.ID { // it was begun before we looked
		out = &output{d: d}
	}
	d.output, d.asking = nil, false
	d.end(p.ID)
	d.last = aResult
	var got details
	_ = json.Unmarshal(p.Details, &got)
	switch {
	case p.Outcome == session.Rejected:
		d.line(yellow, "  "+Clean(p.Output))
	case p.Partial: // most of it was shown while it was written
		written, note := p.Output, ""
		if i := strings.LastIndex(p.Output, "\n["); i >= 0 {
			written, note = p.Output[:i], p.Output[i+1:]
		}
		out.finish(written)
		d.line(red, "  "+Clean(note))
	case p.Outcome != session.Succeeded:
		d.some(red, "  ", p.Output, maxThought)
	case p.Name == "think" || p.Name == "task_tracker":
	case p.Name == "finish":
		d.finished(p)
	case got.Diff != nil && *got.Diff != "":
		if !d.asShown(*got.Diff) {
			d.diff(*got.Diff)
		}
	case p.Name == "str_replace_editor":
		d.some(dim, "  ", p.Output, 3)
	default:
		out.finish(p.Output)
	}
	if got.ExitCode != nil && *got.ExitCode > 0 {
		d.line(red, fmt.Sprintf("  exit code %d", *got.ExitCode))
	} else if got.ExitCode != nil && *got.ExitCode < 0 {
		d.line(dim, "  "+strings.Trim(strings.TrimSpace(Clean(got.Suffix)), "[]"))
	}
}

// finished shows the last words of an agent that considers its task done.
func (d *Display) finished(p session.ToolReturned) {
	var a arguments
	_ = json.Unmarshal(p.Args, &a)
	if a.Message == "" {
		a.Message = p.Output
	}
	d.apart(words)
	d.fresh()
	d.words.add(Clean(a.Message))
	d.fresh()
}

// diff shows a change, with its first lines only if it is a long one.
func (d *Display) diff(text string) {
	lines := strings.Split(strings.TrimRight(Clean(text), "\n"), "\n")
	most := d.most(maxDiff)
	for i, l := range lines {
		if i == most && len(lines) > most+1 {
			d.line(dim, "  … "+count(len(lines)-i, "more line"))
			return
		}
		look := changeLook(l)
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
			look = dim
		case strings.HasPrefix(l, "@@"):
			look = cyan
		}
		d.line(look, "  "+clip(l, d.width()-3))
	}
}

// Asked shows a call that a person is to decide about, unless it is the last
// that was shown.
func (d *Display) Asked(c session.ToolCall) {
	if d.tool.ID != c.ID {
		d.called(session.ToolCalled{ToolCall: c, Awaits: true})
	}
}

// asked says why the person is asked about a call. A server says so before it tells
// of the call, so the reason is kept until then.
func (d *Display) asked(p session.ApprovalAsked) {
	if !d.asking {
		d.why = p.Reason
		return
	}
	if p.Reason != "" {
		d.line(yellow, "  ? "+Clean(p.Reason))
	}
}

// Risk says how dangerous a call was rated, for a question about it.
func Risk(r session.Risk) string {
	switch r {
	case session.RiskLow:
		return "low risk"
	case session.RiskMedium:
		return "medium risk"
	case session.RiskHigh:
		return "HIGH RISK"
	}
	return "risk unknown"
}
