package files

import (
	"mime"
	"net/http"
	"path"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
)

const aboutGetFile = "Returns the raw bytes of a file of any type and size as an attachment. The file is read while it is sent: on an error the connection is closed before the end. " + aboutNames

type getFileQuery struct {
	ID   string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Path string `query:"path" required:"true" minLength:"1" maxLength:"12288" doc:"File, relative to the workspace."`
}

// getFile sends a file of the workspace as a download. It never tells what it might be:
// a page from the sandbox must not become one of ours.
func (d *Handlers) getFile(w http.ResponseWriter, r *http.Request, c *rest.Call, q getFileQuery) error {
	file, err := inWorkspace("path", q.Path)
	if err != nil {
		return err
	}
	ctx, release := d.Life.Hold(r.Context(), c.Who)
	defer release()
	v, err := d.view(ctx, c, q.ID)
	if err != nil {
		return rest.WhyEnded(ctx, err)
	}
	defer v.Close()
	out := rest.NewDownload(w, "application/octet-stream")
	name := api.EncodeName([]byte(path.Base(file)))
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	err = out.All(func() error {
		_, err := v.Read(ctx, file, out)
		return err
	})
	return fileFault(rest.WhyEnded(ctx, err), "path", "a regular file")
}

func describeBytes(_ huma.Registry, o *huma.Operation) {
	o.Responses["200"] = &huma.Response{Description: "The file", Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
}
