// Package grep is the tool that looks for lines in the files of the workspace.
// The search itself is the runner's, so it works in every image.
package grep

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
)

//go:embed grep.md
var description string

//go:embed schema.json
var schema []byte

// Tool implements tool.Tool.
type Tool struct{}

// Name is the tool's.
const Name = "grep"

// Spec implements tool.Tool.
func (Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, ReadOnly: true, Sandbox: true}
}

type args struct {
	Pattern       string `json:"pattern"`
	Path          string `json:"path"`
	Include       string `json:"include"`
	CaseSensitive *bool  `json:"case_sensitive"`
	Context       int    `json:"context"`
}

// Run implements tool.Tool.
func (Tool) Run(ctx context.Context, open tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	box, err := open(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	r, err := box.Grep(ctx, sandbox.GrepParams{Pattern: a.Pattern, Path: a.Path, Include: a.Include, Context: a.Context,
		IgnoreCase: a.CaseSensitive != nil && !*a.CaseSensitive})
	if words, refused := sandbox.Refusal(err); refused {
		return tool.Failf("%s", words), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: text(a, r)}, nil
}

// text puts what was found into words.
func text(a args, r sandbox.GrepResult) string {
	var b strings.Builder
	if len(r.Files) == 0 {
		fmt.Fprintf(&b, "No line matches %q in %s", a.Pattern, tool.Path(r.Root))
		if a.Include != "" {
			fmt.Fprintf(&b, " in files that match %q", a.Include)
		}
		b.WriteString(".\n")
	} else {
		fmt.Fprintf(&b, "%s in %s:\n", count(r.Matches, "matching line"), count(len(r.Files), "file"))
	}
	shown := 0
	for _, f := range r.Files {
		part := file(f)
		if b.Len()+len(part) > sandbox.MaxOutput {
			break
		}
		b.WriteString(part)
		shown++
	}
	if left := len(r.Files) - shown; left > 0 {
		fmt.Fprintf(&b, "[%s not shown: there is too much to show. Use a narrower pattern, path or include.]\n", count(left, "file"))
	}
	if r.More {
		b.WriteString("[There may be more matches in files that were changed earlier. Use a narrower pattern, path or include.]\n")
	}
	if r.Unfinished {
		b.WriteString("[The search was not finished: there are too many files. Search in a smaller folder.]\n")
	}
	if r.Large > 0 {
		fmt.Fprintf(&b, "[%s left out as too large.]\n", count(r.Large, "file"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// file shows the lines of a file, with a line of dots where some are skipped.
func file(f sandbox.GrepFile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", tool.Path(f.Path))
	around, matches := false, 0
	for _, l := range f.Lines {
		around = around || !l.Match
	}
	for i, l := range f.Lines {
		if around && i > 0 && f.Lines[i-1].Number+1 != l.Number {
			b.WriteString("  ...\n")
		}
		sep := "-"
		if l.Match {
			sep = ":"
			matches++
		}
		fmt.Fprintf(&b, "  %d%s %s\n", l.Number, sep, l.Text)
	}
	if left := f.Matches - matches; left > 0 {
		fmt.Fprintf(&b, "  [%s in this file not shown.]\n", count(left, "more line"))
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
