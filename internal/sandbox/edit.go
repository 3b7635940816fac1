package sandbox

import "context"

// EditParams is one use of the editor, with the parameters of the str_replace_editor
// tool.
type EditParams struct {
	// ID makes an edit idempotent, like the ID of a Command: a repeated edit returns the
	// first result. "" for views.
	ID    string `json:"id,omitempty"`
	Again bool   `json:"again,omitempty"`
	// Command is view, create, str_replace, insert or undo_edit.
	Command string `json:"command"`
	// Path is absolute.
	Path       string  `json:"path"`
	FileText   *string `json:"file_text,omitempty"`
	OldStr     *string `json:"old_str,omitempty"`
	NewStr     *string `json:"new_str,omitempty"`
	InsertLine *int    `json:"insert_line,omitempty"`
	ViewRange  []int   `json:"view_range,omitempty"`
	// Shrink refuses a change, unless it was made before: the sandbox is above its disk limit.
	Shrink bool `json:"shrink,omitempty"`
}

// EditResult is the result of an edit.
type EditResult struct {
	// Text is for the model; it starts with "ERROR:" when Failed.
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
	// Old and New are the whole file before and after a change; PrevExist is whether it
	// existed before. Both are empty if they are too large, and then Large is true.
	Old       string `json:"old,omitempty"`
	New       string `json:"new,omitempty"`
	PrevExist bool   `json:"prev_exist,omitempty"`
	Large     bool   `json:"large,omitempty"`
	Lost      bool   `json:"lost,omitempty"` // as in Result
}

// Edit views or changes a text file. An invalid request is a Failed result for the model;
// an error is a failure of the sandbox.
func (s *Sandbox) Edit(ctx context.Context, p EditParams) (EditResult, error) {
	var r EditResult
	p.Again = p.Again && !s.only
	p.Shrink = p.Shrink || p.Command != "view" && s.isFull()
	return r, s.call(ctx, "edit", s.fence, p, &r)
}
