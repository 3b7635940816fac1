package edit

import (
	"encoding/json"
	"fmt"
	"strings"

	"deckhand/internal/tool"
)

// verb is what a command does, for people.
func verb(command string) string {
	switch command {
	case "view":
		return "read"
	case "create":
		return "write"
	case "str_replace", "insert":
		return "edit"
	case "undo_edit":
		return "undo the edit of"
	}
	return command
}

// written are arguments as models and legacy servers write them.
type written struct {
	args
	// Content is the text in calls that were taken over from a legacy server.
	Content *string `json:"content"`
}

// file names the arguments that the command obeys.
func (a written) file() *tool.FileArguments {
	f := tool.FileArguments{Path: "path"}
	switch a.Command {
	case "view":
		f.Lines = "view_range"
	case "create":
		f.After, f.Creates = "file_text", true
	case "str_replace":
		f.Before, f.After = "old_str", "new_str"
	case "insert":
		f.After = "new_str"
	}
	if a.Content != nil && (a.Command == "" || f.Creates && a.FileText == nil) {
		f.After = "content"
	}
	return &f
}

// view shows a call as the change it would be. It is the whole call unless that says more
// than the change would show.
func view(raw json.RawMessage) tool.View {
	var loose written
	_ = json.Unmarshal(raw, &loose)
	v := tool.View{Title: strings.TrimSpace(verb(loose.Command) + " " + loose.Path), ReadOnly: loose.Command == "view", File: loose.file()}
	var a struct {
		args
		Risk string `json:"security_risk"`
	}
	in := json.NewDecoder(strings.NewReader(string(raw)))
	in.DisallowUnknownFields()
	if in.Decode(&a) != nil || a.Command == "" || a.Path == "" {
		return v
	}
	given := [...]bool{a.FileText != nil, a.OldStr != nil, a.NewStr != nil, a.InsertLine != nil, a.ViewRange != nil}
	switch {
	case a.Command == "create" && given == [...]bool{true, false, false, false, false}:
		v.After = *a.FileText
	case a.Command == "str_replace" && a.OldStr != nil && given == [...]bool{false, true, a.NewStr != nil, false, false}:
		v.Before = *a.OldStr
		if a.NewStr != nil {
			v.After = *a.NewStr
		}
	case a.Command == "insert" && given == [...]bool{false, false, true, true, false}:
		v.Title += fmt.Sprintf(" after line %d", *a.InsertLine)
		v.After = *a.NewStr
	case (a.Command == "view" || a.Command == "undo_edit") && given == [5]bool{}:
		v.Whole = true
		return v
	default:
		return v
	}
	v.Whole, v.Changes = true, true
	return v
}
