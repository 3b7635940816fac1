package edit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/runner/edit/text"
)

// create makes a file that does not exist.
func (e *Editor) create(ctx context.Context, t *target, p sandbox.EditParams) (sandbox.EditResult, error) {
	var r sandbox.EditResult
	if p.FileText == nil {
		return r, mistake("The command create needs the parameter file_text.")
	}
	if err := plain("file_text", *p.FileText); err != nil {
		return r, err
	}
	info, err := t.tree.Stat([]byte(t.real))
	switch {
	case err == nil && info.IsDir():
		return r, mistakef("The path %s is a folder. Give the path of a file that does not exist yet.", t.path)
	case err == nil:
		return r, exists(t.path)
	case !errors.Is(err, fs.ErrNotExist):
		return r, explain(t.path, err)
	}
	if err := t.write(ctx, []byte(*p.FileText), true); err != nil {
		return r, err
	}
	e.history.forget(t.real) // of a file that was here before
	r.Text = fmt.Sprintf("File created successfully at: %s\n", t.path)
	return keep(r, false, "", *p.FileText), nil
}

// plain refuses texts that would make a file binary.
func plain(param, s string) error {
	if strings.ContainsRune(s, 0) {
		return mistakef("The parameter %s contains a NUL character, which no text has.", param)
	}
	return nil
}

// keep adds the file before and after, if they are small enough to be kept.
func keep(r sandbox.EditResult, existed bool, before, after string) sandbox.EditResult {
	r.PrevExist = existed
	if len(before) > maxKept || len(after) > maxKept {
		r.Large = true
		return r
	}
	r.Old, r.New = before, after
	return r
}

// replace replaces a text that occurs exactly once.
func (e *Editor) replace(ctx context.Context, t *target, p sandbox.EditParams) (sandbox.EditResult, error) {
	var r sandbox.EditResult
	if p.OldStr == nil || *p.OldStr == "" {
		return r, mistake("The command str_replace needs the parameter old_str: the text to be replaced, which cannot be empty. Use insert to add lines.")
	}
	with := ""
	if p.NewStr != nil {
		with = *p.NewStr
	}
	if err := plain("new_str", with); err != nil {
		return r, err
	}
	if with == *p.OldStr {
		return r, mistake("No replacement was made: old_str and new_str are the same.")
	}
	d, err := t.read()
	if err != nil {
		return r, err
	}
	old := d.asSeen(*p.OldStr)
	found, lines := d.find(old)
	switch {
	case found < 0:
		return r, mistakef("No replacement was made: old_str does not appear verbatim in %s.%s", t.path, d.hint(old))
	case len(lines) > 1:
		return r, mistakef("No replacement was made: old_str appears more than once in %s, on lines %s. Add some of the text around it to make it unique.", t.path, list(lines))
	}
	return e.change(ctx, t, d, found, found+len(old), with)
}

// maxFound is how many places are named when a text is not unique.
const maxFound = 20

// find gives the first place in seen where s is, -1 if there is none, and the
// lines where it begins.
func (l *lines) find(s string) (first int, at []int) {
	first = -1
	line, from := 1, 0
	for len(at) <= maxFound {
		i := strings.Index(l.seen[from:], s)
		if i < 0 {
			break
		}
		if first < 0 {
			first = from + i
		}
		line += strings.Count(l.seen[from:from+i], "\n")
		at = append(at, line)
		if l.seen[from+i] == '\n' {
			line++
		}
		from += i + 1
	}
	return first, at
}

// list names lines, each once.
func list(lines []int) string {
	var out []string
	for i, n := range lines {
		if i == maxFound {
			out = append(out, "and more")
			break
		}
		if i == 0 || lines[i-1] != n {
			out = append(out, fmt.Sprint(n))
		}
	}
	return strings.Join(out, ", ")
}

// hint says where a text is that differs in blanks only, the usual mistake.
func (l *lines) hint(s string) string {
	want := strings.Split(strings.Trim(s, "\n"), "\n")
	for i := range want {
		want[i] = strings.TrimSpace(want[i])
	}
	if want[0] == "" {
		return ""
	}
	have := strings.Split(l.seen, "\n")
search:
	for i := 0; i+len(want) <= len(have); i++ {
		for j, w := range want {
			if strings.TrimSpace(have[i+j]) != w {
				continue search
			}
		}
		return fmt.Sprintf(" The text at line %d differs from it in blanks only: copy it exactly, with its indentation.", i+1)
	}
	return " View the file to copy the text exactly as it is."
}

// insert adds lines behind a line.
func (e *Editor) insert(ctx context.Context, t *target, p sandbox.EditParams) (sandbox.EditResult, error) {
	var r sandbox.EditResult
	switch {
	case p.InsertLine == nil:
		return r, mistake("The command insert needs the parameter insert_line: the line behind which to insert, 0 for the top.")
	case p.NewStr == nil:
		return r, mistake("The command insert needs the parameter new_str: the lines to insert.")
	}
	if err := plain("new_str", *p.NewStr); err != nil {
		return r, err
	}
	d, err := t.read()
	if err != nil {
		return r, err
	}
	n, total := *p.InsertLine, d.count()
	if n < 0 || n > total {
		return r, mistakef("Invalid insert_line %d: the file has %d lines, so it must be between 0 and %d.", n, total, total)
	}
	add := *p.NewStr
	at := d.after(n)
	switch {
	case at > 0 && d.seen[at-1] != '\n': // behind a last line that has no end
		add = d.end + add
	case !strings.HasSuffix(add, "\n"):
		add += d.end
	}
	return e.change(ctx, t, d, at, at, add)
}

// change puts s in the place of d.seen[from:to], writes the file and shows it.
func (e *Editor) change(ctx context.Context, t *target, d *document, from, to int, s string) (sandbox.EditResult, error) {
	var r sandbox.EditResult
	whole := d.replace(from, to, s)
	b, err := d.encoding.Encode(whole)
	if err != nil {
		return r, mistakef("The edit was not made: %v.", err)
	}
	if again, _, err := text.Decode(b); err != nil || again != whole {
		return r, mistakef("The edit was not made: %s would not be readable as %v any more.", t.path, d.encoding)
	}
	undo, err := e.history.push(t.real, d.bytes)
	if err != nil {
		return r, mistakef("The edit was not made, since what undo_edit would need cannot be stored: %v.", err)
	}
	if err := t.write(ctx, b, false); err != nil {
		undo()
		return r, err
	}
	after := cut(whole)
	first := d.line(from)
	last := min(first+max(0, countLines(d.asSeen(s))-1), after.count())
	show := after.number(max(1, min(first, after.count())-around), min(after.count(), last+around), "View the file to see the rest.")
	r.Text = fmt.Sprintf("The file %s has been edited. Here's the result of running `cat -n` on a snippet of %s:\n%s"+
		"Check that the change is what you meant (indentation, no doubled lines), and edit the file again if it is not.\n", t.path, t.path, show)
	return keep(r, true, d.text, whole), nil
}

// undo takes the last change of a file back.
func (e *Editor) undo(ctx context.Context, t *target, _ sandbox.EditParams) (sandbox.EditResult, error) {
	var r sandbox.EditResult
	before, existed := "", true
	d, err := t.read()
	if _, e := t.tree.Stat([]byte(t.real)); errors.Is(e, fs.ErrNotExist) {
		existed = false // then it comes back
	} else if err != nil {
		return r, err
	} else {
		before = d.text
	}
	var now []byte
	if existed {
		now = d.bytes
	}
	b, done, err := e.history.last(t.real, now, existed)
	if errors.Is(err, fs.ErrNotExist) {
		return r, mistakef("There is no edit of %s that could be undone. The last %d edits of a file are remembered.", t.path, versions)
	}
	if err != nil {
		return r, mistakef("The edit could not be undone: %v.", err)
	}
	old, err := t.decode(b)
	if err != nil {
		return r, err
	}
	if err := t.write(ctx, b, false); err != nil {
		return r, err
	}
	done()
	r.Text = fmt.Sprintf("Last edit to %s undone successfully. Here's the result of running `cat -n` on %s:\n%s",
		t.path, t.path, old.number(1, old.count(), "Use view_range to see other lines."))
	return keep(r, existed, before, old.text), nil
}
