package history

import (
	"encoding/json"
	"strings"

	"deckhand/internal/clip"
	"deckhand/internal/session"
)

// maxText is how many bytes of a result the model is shown.
const maxText = 30_000

// details are those that tools with a shell have.
type details struct {
	Prefix     string  `json:"prefix"`
	Suffix     string  `json:"suffix"`
	WorkingDir string  `json:"working_dir"`
	Folder     *string `json:"folder"`
}

// Text is a result as the model sees it: the tool's words around the output, and where the shell stands.
func Text(p session.ToolReturned) string {
	var d details
	_ = json.Unmarshal(p.Details, &d)
	text := d.Prefix + clip.Middle(p.Output, maxText) + d.Suffix
	if d.WorkingDir != "" {
		text += "\n[Current working directory: " + d.WorkingDir + "]"
	}
	if strings.TrimSpace(text) == "" {
		text = "[no output]"
	}
	return text
}

// Folder is where the shell stands after an event: below the workspace, or the whole path of a folder outside. before is
// where it stood before the event.
func Folder(p session.Payload, before string) string {
	var d details
	switch p := p.(type) {
	case session.ToolReturned:
		_ = json.Unmarshal(p.Details, &d)
	case session.CommandEnded:
		_ = json.Unmarshal(p.Details, &d)
	}
	if d.Folder == nil {
		return before
	}
	return *d.Folder
}
