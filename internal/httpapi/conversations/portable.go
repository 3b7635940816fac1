package conversations

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const (
	aboutExport = "Returns a gzipped tar archive with the events, the current workspace, the title and the settings without secrets. Secrets in events are masked; files of the workspace are included unchanged. " +
		"Returns 409 if the conversation is too large to be imported. Does not start the sandbox. The file is created while it is sent: if that fails, the connection is closed, and the incomplete file cannot be imported."
	aboutImport = "The body is a file from GET /api/conversations/{conversation_id}/export of this or another server, up to 4 GiB unpacked. The new conversation belongs to you and is stopped; send a message to continue it. " +
		"Events are stored as imported events: approvals, trust, costs and the repository of the original are not imported. Of its settings, the model and limits stricter than yours are applied; the response lists the others. Starts a sandbox if the file contains a workspace. If the import fails, the conversation is deleted."
	portableType = "application/gzip"
	// maxImport is the maximum size of a request. It is above the compressed size of every file that can be imported.
	maxImport = 5 << 30
)

// Portable exports and imports conversations.
type Portable interface {
	// Export writes a conversation. Before the first byte, it can fail like other reads of a workspace.
	Export(ctx context.Context, row session.Row, w io.Writer) error
	// Import creates a conversation of the user. The error for an invalid file is an *api.ValidationError.
	Import(ctx context.Context, user string, from io.Reader) (api.ImportedConversation, error)
}

func (d *Handlers) portableRoutes() []rest.Route {
	return []rest.Route{
		rest.RawOp(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/export", ID: "exportConversation", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Export a conversation with its workspace as one file", About: aboutExport, May: rest.WorkspaceErrors}, describeExport, d.exportConversation),
		rest.RawOp(rest.Route{Method: "POST", Path: "/api/conversations/import", ID: "importConversation", Stream: true, Upload: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Create a conversation from an exported file", About: aboutImport, May: append(rest.SizeErrors, rest.SandboxErrors...)}, describeImport, d.importConversation),
	}
}

// exportConversation sends the file while it is created.
func (d *Handlers) exportConversation(w http.ResponseWriter, r *http.Request, c *rest.Call, p rest.InConversation) error {
	ctx, release := d.Life.Hold(r.Context(), c.Who)
	defer release()
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return rest.WhyEnded(ctx, err)
	}
	out := rest.NewDownload(w, portableType)
	w.Header().Set("Content-Disposition", `attachment; filename="`+string(row.ID)+`.deckhand.tar.gz"`)
	if r.Method == http.MethodHead {
		return out.All(func() error { return nil })
	}
	return rest.WhyEnded(ctx, out.All(func() error { return d.Portable.Export(ctx, row, out) }))
}

// importConversation reads the file while it is received.
func (d *Handlers) importConversation(w http.ResponseWriter, r *http.Request, c *rest.Call, _ rest.None) error {
	if r.ContentLength > maxImport {
		return rest.TooLarge(maxImport)
	}
	ctx, release := d.Life.Hold(r.Context(), c.Who)
	defer release()
	made, err := d.Portable.Import(ctx, c.Who.User, rest.NewPacedBody(w, http.MaxBytesReader(w, r.Body, maxImport)))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return rest.TooLarge(maxImport)
	case err != nil:
		return rest.WhyEnded(ctx, err)
	}
	rest.WriteJSON(w, http.StatusOK, made)
	return nil
}

func describeExport(_ huma.Registry, o *huma.Operation) {
	o.Responses["200"] = &huma.Response{Description: "The file", Content: map[string]*huma.MediaType{portableType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
}

func describeImport(r huma.Registry, o *huma.Operation) {
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{portableType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	o.Responses["200"] = &huma.Response{Description: "Success", Content: rest.JSONContent(r.Schema(reflect.TypeFor[api.ImportedConversation](), true, ""))}
}
