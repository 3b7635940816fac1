package httpapi

import (
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
)

// describe makes the document from the route table, once.
func (d *Door) describe() {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Deckhand", Version: d.Version, License: &huma.License{Name: "Apache-2.0"},
			Description: "Stores user settings and runs conversations: LLM agents that work on a repository in a sandbox. All routes except health checks and login need a key."},
		Components: &huma.Components{Schemas: d.registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			"key":    {Type: "apiKey", In: "header", Name: "X-Session-API-Key"},
			"bearer": {Type: "http", Scheme: "bearer"},
		}},
		Paths: map[string]*huma.PathItem{},
	}
	for _, tag := range []string{tagSettings, tagConversations, tagEvents, tagWorkspace, tagGit, tagKeys, tagFeedback, tagWebhooks, tagIntegrations, tagHealth, tagPages, tagOlder} {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: tag})
	}
	invalid := d.registry.Schema(reflect.TypeFor[api.ValidationError](), true, "")
	stranger := d.registry.Schema(reflect.TypeFor[api.Unauthorized](), true, "")
	shapes := map[family]*huma.Schema{
		plain:        d.registry.Schema(reflect.TypeFor[api.Problem](), true, ""),
		conversation: d.registry.Schema(reflect.TypeFor[api.ConversationError](), true, ""),
		bare:         {Type: huma.TypeString, Description: "Error message."},
	}
	for i := range d.routes {
		r := &d.routes[i]
		o := &huma.Operation{OperationID: r.id, Method: r.method, Path: strings.ReplaceAll(r.path, "{$}", ""), Summary: r.summary, Description: r.about, Tags: []string{r.tag},
			Responses: map[string]*huma.Response{}}
		r.document(d, o)
		if !r.public {
			o.Security = []map[string][]string{{"key": {}}, {"bearer": {}}}
			o.Responses["401"] = &huma.Response{Description: "The key is missing or invalid.", Content: jsonContent(stranger)}
			o.Responses["429"] = &huma.Response{Description: "Too many requests. Retry after the time in Retry-After.", Content: jsonContent(shapes[r.family])}
		}
		if r.family == bare {
			o.Responses["401"] = &huma.Response{Description: "The key is missing or invalid; or, as a string, the git provider token is missing or rejected.",
				Content: jsonContent(&huma.Schema{AnyOf: []*huma.Schema{stranger, shapes[bare]}})}
		}
		if r.id == "login" {
			o.Responses["401"] = &huma.Response{Description: "The ticket or key is invalid, revoked or expired.", Content: jsonContent(stranger)}
		}
		if r.method == http.MethodPost && !r.public {
			o.Parameters = append(o.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: ptr(255)},
				Description: "Makes a request safe to retry: the same key with the same request returns the first response, and nothing is done twice."})
		}
		if o.RequestBody != nil || len(o.Parameters) > 0 {
			o.Responses["422"] = &huma.Response{Description: "Validation error. detail names each field and what is wrong with it.", Content: jsonContent(invalid)}
		}
		for _, status := range r.may {
			o.Responses[itoa(int64(status))] = &huma.Response{Description: explained[status], Content: jsonContent(shapes[r.family])}
		}
		o.Responses["default"] = &huma.Response{Description: "Any other error.", Content: jsonContent(shapes[r.family])}
		doc.AddOperation(o)
		if o.RequestBody != nil && o.RequestBody.Content["application/json"] != nil {
			d.schemas[r.id] = o.RequestBody.Content["application/json"].Schema
		}
	}
	amend(d.registry)
	if d.origin != "" { // where else, nobody but the reader knows
		doc.Servers = []*huma.Server{{URL: d.origin + d.prefix}}
	}
	d.document = doc
	// Written when somebody asks: it takes longer than all the rest.
	d.spec = sync.OnceValue(func() []byte {
		spec, err := doc.MarshalJSON()
		if err != nil {
			panic(err)
		}
		return pretty(spec)
	})
	d.page = sync.OnceValue(d.renderDocs)
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
func (d *Door) Spec() []byte { return d.spec() }

func describePage(contentType string) func(o *huma.Operation) {
	return func(o *huma.Operation) {
		o.Responses["200"] = &huma.Response{Description: "Success", Content: map[string]*huma.MediaType{contentType: {}}}
	}
}

func serveSpec(d *Door, w http.ResponseWriter, _ *http.Request, _ *call) error {
	w.Header()["Content-Type"] = jsonType
	_, err := w.Write(d.spec())
	return err
}

func serveMetrics(d *Door, w http.ResponseWriter, r *http.Request, _ *call) error {
	if d.Metrics == nil {
		return fail(http.StatusNotFound, api.CodeNotFound, "Metrics are served on another address. See --metrics-addr.")
	}
	d.Metrics.ServeHTTP(w, r)
	return nil
}
