package edit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// view shows a file or a folder.
func (e *Editor) view(_ context.Context, t *target, p sandbox.EditParams) (sandbox.EditResult, error) {
	var r sandbox.EditResult
	info, err := t.tree.Stat([]byte(t.real))
	if err != nil {
		return r, explain(t.path, err)
	}
	if info.IsDir() {
		if len(p.ViewRange) > 0 {
			return r, mistakef("The parameter view_range is for files, and %s is a folder.", t.path)
		}
		r.Text, err = t.folder()
		return r, err
	}
	d, err := t.read()
	if err != nil {
		return r, err
	}
	first, last, note, err := span(p.ViewRange, d.count())
	if err != nil {
		return r, err
	}
	r.Text = fmt.Sprintf("Here's the result of running `cat -n` on %s:\n", t.path)
	if d.count() == 0 {
		r.Text += "(The file is empty.)\n"
		return r, nil
	}
	r.Text += d.number(first, last, "Use view_range to see other lines, or `grep -n` to find the ones you need.") + note
	return r, nil
}

// span checks a range of lines.
func span(v []int, n int) (first, last int, note string, err error) {
	if len(v) == 0 {
		return 1, n, "", nil
	}
	if len(v) != 2 {
		return 0, 0, "", mistakef("Invalid view_range %v: it takes two line numbers, the first and the last, or -1 as the last for the end of the file.", v)
	}
	first, last = v[0], v[1]
	switch {
	case first < 1 || first > max(n, 1):
		return 0, 0, "", mistakef("Invalid view_range %v: the file has %d lines, so the first must be between 1 and %d.", v, n, max(n, 1))
	case last == -1:
		return first, n, "", nil
	case last < first:
		return 0, 0, "", mistakef("Invalid view_range %v: the last line must not be before the first, or -1 for the end of the file.", v)
	case last > n:
		return first, n, fmt.Sprintf("(The file ends at line %d.)\n", n), nil
	}
	return first, last, "", nil
}

// folder shows what is in a folder and in the folders there.
func (t *target) folder() (string, error) {
	list, err := t.tree.List([]byte(t.real))
	if err != nil {
		return "", t.listing(err)
	}
	base := strings.TrimSuffix(path.Clean(t.path), "/")
	var out strings.Builder
	fmt.Fprintf(&out, "Here's the files and directories up to 2 levels deep in %s, excluding hidden items:\n%s/\n", t.path, base)
	left, hidden := maxShown, 0
	show := func(dir string, f sandbox.File) bool {
		line := name(dir, f) + "\n"
		if left -= utf8.RuneCountInString(line); left >= 0 {
			out.WriteString(line)
		}
		return left >= 0
	}
	for _, f := range list {
		if f.Name[0] == '.' {
			hidden++
			continue
		}
		if !show(base, f) {
			break
		}
		if !f.IsDir() {
			continue
		}
		below, err := t.tree.List([]byte(path.Join(t.real, string(f.Name))))
		if err != nil {
			continue // gone, not for us, or too full to be worth showing
		}
		for _, g := range below {
			if g.Name[0] != '.' && !show(base+"/"+string(f.Name), g) {
				break
			}
		}
	}
	if left < 0 {
		out.WriteString(clipped + "View one of the folders, or use `find` to look for a name.</NOTE>\n")
	}
	if hidden > 0 {
		fmt.Fprintf(&out, "\n%d hidden files/directories in this directory are excluded. Use `ls -la %s` to see them.\n", hidden, t.path)
	}
	return out.String(), nil
}

func (t *target) listing(err error) error {
	if errors.Is(err, rpc.ErrTooBig) {
		return mistakef("%s has too many files to be shown. Use `ls` or `find` to look for the ones you need.", t.path)
	}
	return explain(t.path, err)
}

// name is how a file is listed. Names that would garble the list are quoted.
func name(dir string, f sandbox.File) string {
	s := printable(dir + "/" + string(f.Name))
	switch {
	case f.IsDir():
		return s + "/"
	case f.Mode.Type() == fs.ModeSymlink:
		return s + " -> " + printable(string(f.Link))
	}
	return s
}

func printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(s)
		}
	}
	return s
}
