// Package edit is the tool that views, creates and changes text files, and lets
// models that see look at images. The rules of editing are the runner's; here
// they are put into words for models and clients.
package edit

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

//go:embed edit.md
var description string

//go:embed schema.json
var schema []byte

//go:embed viewer.md
var viewerDescription string

//go:embed viewer.json
var viewerSchema []byte

// Tool implements tool.Tool.
type Tool struct{}

// Viewer is the tool for agents that change nothing: it has the same name and
// only views.
type Viewer struct{}

// Name is the tool's.
const Name = "str_replace_editor"

// maxKept is the size up to which a result keeps each of a file's texts, and the
// difference between them. Every client is sent what is kept.
const maxKept = 256 << 10

// Spec implements tool.Tool.
func (Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, Sandbox: true}
}

// Spec implements tool.Tool.
func (Viewer) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(viewerDescription), Schema: viewerSchema, ReadOnly: true, Sandbox: true}
}

type args struct {
	Command    string  `json:"command"`
	Path       string  `json:"path"`
	FileText   *string `json:"file_text"`
	OldStr     *string `json:"old_str"`
	NewStr     *string `json:"new_str"`
	InsertLine *int    `json:"insert_line"`
	ViewRange  []int   `json:"view_range"`
}

// Run implements tool.Tool.
func (Tool) Run(ctx context.Context, open tool.Box, call tool.Call) (tool.Result, error) {
	return run(ctx, open, call, false)
}

// Run implements tool.Tool.
func (Viewer) Run(ctx context.Context, open tool.Box, call tool.Call) (tool.Result, error) {
	return run(ctx, open, call, true)
}

func run(ctx context.Context, open tool.Box, call tool.Call, viewOnly bool) (tool.Result, error) {
	var a args
	if err := call.Into(&a); err != nil {
		return tool.Failf("ERROR: This call is not valid: %v.", err), nil
	}
	if viewOnly && a.Command != "view" {
		return tool.Failf("ERROR: The only command is view: this agent looks at files and does not change them."), nil
	}
	box, err := open(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if a.Command == "view" {
		if r, ok, err := viewImage(ctx, box, a); ok || err != nil {
			return r, err
		}
	}
	p := sandbox.EditParams{Command: a.Command, Path: a.Path, FileText: a.FileText, OldStr: a.OldStr, NewStr: a.NewStr,
		InsertLine: a.InsertLine, ViewRange: a.ViewRange}
	if a.Command != "view" { // a view may be done twice
		p.ID, p.Again = call.ID, call.Repeats()
	}
	r, err := box.Edit(ctx, p)
	if err != nil {
		return tool.Result{}, err
	}
	if r.Lost {
		r.Text = "ERROR: " + box.Ended() + " while this edit was made. It was restarted, and the edit may have been made or not: view the file before you go on."
	}
	return result(a, r)
}

// result puts the editor's answer into the shape of the tool.
func result(a args, r sandbox.EditResult) (tool.Result, error) {
	out := tool.Result{Text: r.Text, Failed: r.Failed, Unknown: r.Lost}
	d := form.EditDetails{Path: a.Path}
	if a.Command != "view" && !r.Failed {
		d.PrevExist = &r.PrevExist
		if !r.Large {
			compare(&d, r)
		}
	}
	var err error
	out.Details, err = json.Marshal(d)
	return out, err
}

// compare adds the file before and after, and the difference, as far as they
// are small enough to be kept.
func compare(d *form.EditDetails, r sandbox.EditResult) {
	if len(r.Old) <= maxKept && len(r.New) <= maxKept {
		d.NewContent = &r.New
		if r.PrevExist {
			d.OldContent = &r.Old
		}
	}
	old := d.Path
	if !r.PrevExist {
		old = "/dev/null"
	}
	if diff := udiff.Unified(old, d.Path, r.Old, r.New); len(diff) <= maxKept {
		d.Diff = &diff
	}
}
