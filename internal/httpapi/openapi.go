package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/internal/httpapi/page"
	"deckhand/internal/httpapi/rest"
)

// describe makes the document from the route table, once.
func (d *Handler) describe() {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Deckhand", Version: d.Server.Version, License: &huma.License{Name: "Apache-2.0"},
			Description: "Stores user settings and runs conversations: LLM agents that work on a repository in a sandbox. All routes except health checks and login need a key."},
		Components: &huma.Components{Schemas: d.schemas.Registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			"key":    {Type: "apiKey", In: "header", Name: "X-Session-API-Key"},
			"bearer": {Type: "http", Scheme: "bearer"},
		}},
		Paths: map[string]*huma.PathItem{},
	}
	for _, tag := range []string{rest.TagSettings, rest.TagConversations, rest.TagEvents, rest.TagWorkspace, rest.TagGit, rest.TagKeys, rest.TagFeedback, rest.TagNotifications, rest.TagWebhooks, rest.TagIntegrations, rest.TagHealth, rest.TagPages, rest.TagOlder} {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: tag})
	}
	invalid, stranger, shapes := d.schemas.ErrorSchemas()
	for i := range d.routes {
		r := &d.routes[i]
		o := &huma.Operation{OperationID: r.ID, Method: r.Method, Path: strings.ReplaceAll(r.Path, "{$}", ""), Summary: r.Summary, Description: r.About, Tags: []string{r.Tag},
			Responses: map[string]*huma.Response{}}
		r.Document(d.schemas, o)
		if !r.Public {
			o.Security = []map[string][]string{{"key": {}}, {"bearer": {}}}
			o.Responses["401"] = &huma.Response{Description: "The key is missing or invalid.", Content: rest.JSONContent(stranger)}
			o.Responses["429"] = &huma.Response{Description: "Too many requests. Retry after the time in Retry-After.", Content: rest.JSONContent(shapes[r.Family])}
		}
		if r.Family == rest.Bare {
			o.Responses["401"] = &huma.Response{Description: "The key is missing or invalid; or, as a string, the git provider token is missing or rejected.",
				Content: rest.JSONContent(&huma.Schema{AnyOf: []*huma.Schema{stranger, shapes[rest.Bare]}})}
		}
		if r.ID == "login" {
			o.Responses["401"] = &huma.Response{Description: "The ticket or key is invalid, revoked or expired.", Content: rest.JSONContent(stranger)}
		}
		if r.Method == http.MethodPost && !r.Public {
			o.Parameters = append(o.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(255)},
				Description: "Makes a request safe to retry: the same key with the same request returns the first response, and nothing is done twice."})
		}
		if o.RequestBody != nil || len(o.Parameters) > 0 {
			o.Responses["422"] = &huma.Response{Description: "Validation error. detail names each field and what is wrong with it.", Content: rest.JSONContent(invalid)}
		}
		for _, status := range r.May {
			o.Responses[strconv.FormatInt(int64(status), 10)] = &huma.Response{Description: explained[status], Content: rest.JSONContent(shapes[r.Family])}
		}
		o.Responses["default"] = &huma.Response{Description: "Any other error.", Content: rest.JSONContent(shapes[r.Family])}
		doc.AddOperation(o)
		if o.RequestBody != nil && o.RequestBody.Content["application/json"] != nil {
			d.schemas.Bodies[r.ID] = o.RequestBody.Content["application/json"].Schema
		}
	}
	d.account.Amend(d.schemas.Registry)
	amend(d.schemas.Registry)
	if d.guard.Origin != "" { // other URLs are known only to the reader
		doc.Servers = []*huma.Server{{URL: d.guard.Origin + d.guard.Prefix}}
	}
	d.document = doc
	// Written on the first request: it takes longer than all the rest.
	d.spec = sync.OnceValue(func() []byte {
		spec, err := doc.MarshalJSON()
		if err != nil {
			panic(err)
		}
		return pretty(spec)
	})
	d.pages.Docs = sync.OnceValue(func() []byte { return page.RenderDocs(doc, d.schemas.Registry, d.routes, d.Server.Version) })
}

// explained is what the errors mean that some routes have.
var explained = map[int]string{
	http.StatusNotFound:              "The conversation or file does not exist, or the conversation has no workspace yet (WORKSPACE$NOT_READY).",
	http.StatusConflict:              "The workspace can only be read while the conversation is running. Start the conversation first.",
	http.StatusRequestEntityTooLarge: "The file or request is too large.",
	http.StatusUnsupportedMediaType:  "The type of the file or request is not supported.",
	http.StatusServiceUnavailable:    "The sandbox is not available. error has the reason.",
}

// Spec is the OpenAPI document as JSON.
func (d *Handler) Spec() []byte {
	d.described()
	return d.spec()
}

func (d *Handler) serveSpec(w http.ResponseWriter, _ *http.Request, _ *rest.Call) error {
	w.Header()["Content-Type"] = rest.JSONType
	_, err := w.Write(d.spec())
	return err
}

func (d *Handler) serveMetrics(w http.ResponseWriter, r *http.Request, _ *rest.Call) error {
	if d.Telemetry.Metrics == nil {
		return rest.NoMetrics()
	}
	d.Telemetry.Metrics.ServeHTTP(w, r)
	return nil
}

func pretty(b []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return b
	}
	out.WriteByte('\n')
	return out.Bytes()
}
