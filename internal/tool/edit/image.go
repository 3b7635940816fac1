package edit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// maxImage is how large an image may be that is shown to a model. Providers
// refuse larger ones.
const maxImage = 5 << 20

// images are the kinds that models see, by the ending of a file's name.
var images = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
}

// viewImage shows an image. It is false for what is none, and for what cannot
// be read: the editor says what is wrong with that.
func viewImage(ctx context.Context, box *sandbox.Sandbox, a args) (tool.Result, bool, error) {
	if images[strings.ToLower(path.Ext(a.Path))] == "" || !path.IsAbs(a.Path) {
		return tool.Result{}, false, nil
	}
	var data bytes.Buffer
	f, err := box.Read(ctx, sandbox.ReadParams{PathParams: sandbox.PathParams{Path: []byte(a.Path)}, Length: maxImage + 1}, &data)
	if _, refused := sandbox.Refusal(err); refused {
		return tool.Result{}, false, nil
	}
	if err != nil {
		return tool.Result{}, false, err
	}
	// What the file is counts, not what it is called.
	kind := http.DetectContentType(data.Bytes())
	if !shown(kind) {
		return tool.Result{}, false, nil
	}
	if data.Len() > maxImage {
		return tool.Failf("ERROR: The image %s is too large to be shown: %.1f MB of at most %d MB. Make a smaller copy of it first.",
			a.Path, float64(f.Size)/(1<<20), maxImage>>20), true, nil
	}
	r := tool.Result{
		Text:   fmt.Sprintf("Here is the image %s (%s, %d bytes).", a.Path, kind, data.Len()),
		Images: []string{"data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data.Bytes())},
	}
	r.Details, err = json.Marshal(form.EditDetails{Path: a.Path})
	return r, true, err
}

func shown(kind string) bool {
	for _, k := range images {
		if k == kind {
			return true
		}
	}
	return false
}
