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
	"deckhand/internal/tool"
)

// Bounds of what is shown of a call.
const (
	maxCommand = 20 // lines
	maxDiff    = 40
	maxValue   = 120 // characters of an argument
)

// called shows what is about to be done.
func (d *Display) called(p session.ToolCalled) {
	d.tool, d.output, d.shown, d.asking = p.ToolCall, &output{d: d}, nil, p.Awaits
	if c := tool.Describe(p.Name).Display.Content; c != tool.Message && c != tool.Thought && c != tool.Hidden { // words begin as such
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
	display, v := tool.Show(c.Name, c.Args)
	switch {
	case v.Whole && display.Content == tool.Command:
		d.command(v, math.MaxInt)
		return
	case v.Whole:
		d.line(cyan, "• "+Inline(strings.TrimSpace(v.Title+" "+v.More)))
		if v.Changes {
			d.change(v)
		}
		if v.Text != "" {
			d.line("", "  "+strings.ReplaceAll(Clean(v.Text), "\n", "\n  "))
		}
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
	display, v := tool.Show(c.Name, c.Args)
	switch {
	case display.Content == tool.Message, display.Content == tool.Hidden: // the result has it, or nothing is shown
	case display.Content == tool.Command:
		d.command(v, d.most(maxCommand))
	case display.Content == tool.Thought:
		d.thought(v.Text)
	case v.Title != "":
		d.title(v.Title, v.More)
		d.items(v.Items)
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

func (d *Display) command(v tool.View, most int) {
	mark := "$ "
	if v.Input {
		mark = "< "
	}
	lines := strings.Split(strings.TrimRight(Clean(v.Text), "\n"), "\n")
	for i, l := range lines {
		if i == most {
			d.line(dim, "  … "+count(len(lines)-i, "more line"))
			return
		}
		d.line(cyan, mark+l)
		mark = "  "
	}
}

func (d *Display) items(all []tool.Item) {
	for _, t := range all {
		mark, look := "[ ] ", ""
		switch {
		case t.Done:
			mark, look = "[x] ", green
		case t.Active:
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
	content := tool.Describe(p.Name).Display.Content
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
	case content == tool.Thought || content == tool.Checklist || content == tool.Hidden:
	case content == tool.Message:
		d.finished(p)
	case got.Diff != nil && *got.Diff != "":
		if !d.asShown(*got.Diff) {
			d.diff(*got.Diff)
		}
	case content == tool.File:
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
	_, v := tool.Show(p.Name, p.Args)
	if v.Text == "" {
		v.Text = p.Output
	}
	d.apart(words)
	d.fresh()
	d.words.add(Clean(v.Text))
	d.fresh()
}

// Diff shows a unified diff.
func (d *Display) Diff(text string) {
	d.apart(aCall)
	d.diff(text)
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

// Asked shows a call that needs approval, with the reason, unless both were shown last.
func (d *Display) Asked(c session.ToolCall, reason string) {
	if d.tool.ID != c.ID {
		d.called(session.ToolCalled{ToolCall: c, Awaits: true})
	}
	d.asked(session.ApprovalAsked{Reason: reason})
}

// asked says why the person is asked about a call. A server says so before it tells
// of the call, so the reason is kept until then.
func (d *Display) asked(p session.ApprovalAsked) {
	if !d.asking {
		d.why = p.Reason
		return
	}
	if p.Reason != "" && d.reasoned != d.tool.ID {
		d.line(yellow, d.folds("  ? ", Clean(p.Reason)))
		d.reasoned = d.tool.ID
	}
}

// edited shows a call that was approved with other arguments, as it runs.
func (d *Display) edited(p session.ApprovalGiven) {
	if !p.Approved || len(p.Args) == 0 || d.tool.ID != p.ID {
		return
	}
	d.tool.Args, d.shown = p.Args, nil
	d.Notice("approved with changes:")
	d.whole(d.tool)
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
