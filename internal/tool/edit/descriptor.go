package edit

import (
	"encoding/json"
	"path"
	"strings"

	"deckhand/internal/risk"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name:     Name,
	Open:     func(tool.Server) tool.Tool { return Tool{} },
	Viewer:   Viewer{},
	Rate:     risk.ByArguments(rate),
	Patterns: &tool.Patterns{Check: checkFolder, Propose: proposeFolder, Matches: inFolder},
	Legacy: &form.Form{Action: action, Observe: observe, Actions: map[string]form.Action{
		"read":  {Means: []string{"path", "view_range"}, Read: readRead},
		"edit":  {Means: []string{"path", "command", "file_text", "old_str", "new_str", "insert_line"}, Read: readEdit},
		"write": {Read: readCreate},
	}},
	Display: tool.Display{Content: tool.File, View: view},
}

// rate rates looking at a file and changing one.
func rate(a risk.Arguments) (risk.Rating, string) {
	name, _ := a.Text("path")
	if what, _ := a.Text("command"); what == "view" {
		return risk.ReadPath(name)
	}
	return risk.WritePath(name)
}

// checkFolder: a pattern is a folder, with all files below.
func checkFolder(pattern string) string {
	folder, ok := strings.CutSuffix(pattern, "/*")
	if !ok || !path.IsAbs(folder) || path.Clean(folder) != folder || folder == "/" || strings.ContainsAny(folder, "*?[") || risk.Disguised(folder) {
		return "A pattern for the editor names a folder by its whole path, like str_replace_editor:/workspace/docs/*."
	}
	return ""
}

func proposeFolder(args json.RawMessage) string {
	a, _ := risk.Parse(args)
	name, _ := a.Text("path")
	folder := path.Dir(name)
	if folder == "/" || !below(folder, name) {
		return ""
	}
	return folder + "/*"
}

func inFolder(pattern string, args json.RawMessage) bool {
	a, _ := risk.Parse(args)
	name, _ := a.Text("path")
	return below(strings.TrimSuffix(pattern, "/*"), name)
}

// below reports whether a path lies in a folder, without any way out of it.
func below(folder, name string) bool {
	return path.IsAbs(name) && path.Clean(name) == name && strings.HasPrefix(name, folder+"/")
}
