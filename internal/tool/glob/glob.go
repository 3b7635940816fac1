// Package glob is the tool that looks for files of the workspace by their
// names. The search itself is the runner's, so it works in every image.
package glob

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
)

//go:embed glob.md
var description string

//go:embed schema.json
var schema []byte

// Tool implements tool.Tool.
type Tool struct{}

// Name is the tool's.
const Name = "glob"

// Spec implements tool.Tool.
func (Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, ReadOnly: true, Sandbox: true}
}

type args struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
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
	r, err := box.Glob(ctx, sandbox.GlobParams{Pattern: a.Pattern, Path: a.Path})
	if words, refused := sandbox.Refusal(err); refused {
		return tool.Failf("%s", words), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: text(a, r)}, nil
}

// text puts what was found into words.
func text(a args, r sandbox.GlobResult) string {
	var b strings.Builder
	if len(r.Paths) == 0 {
		fmt.Fprintf(&b, "Nothing in %s matches %q.\n", tool.Path(r.Root), a.Pattern)
	}
	shown := 0
	for _, p := range r.Paths {
		line := tool.Path(p) + "\n"
		if b.Len()+len(line) > sandbox.MaxOutput {
			break
		}
		b.WriteString(line)
		shown++
	}
	if shown < r.Total {
		fmt.Fprintf(&b, "[These are %d of %d, those that were changed last. Use a narrower pattern or path.]\n", shown, r.Total)
	}
	if r.Unfinished {
		b.WriteString("[The search was not finished: there are too many files. Search in a smaller folder.]\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
