package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/session"
)

// call is what a handler knows of its request beside parameters and body.
type call struct {
	who  access.Identity
	http *http.Request
	// header is the answer's.
	header http.Header
	// raw is the body as it was sent.
	raw []byte
	// bearer is true when the key came as Authorization: Bearer, and browser when
	// it was a login cookie instead.
	bearer, browser bool
	// session is the conversation that the request made, for the log.
	session string
	// retryKey names this request among repeated ones; empty without Idempotency-Key.
	retryKey string
}

// none is the parameters or body of a route that has none.
type none struct{}

// route is a row of the table.
type route struct {
	method, path string
	// id is the operationId; summary, about and tag are for readers of the document.
	id, summary, about, tag string
	// may are the errors of its own that readers should know of; see explained.
	may []int
	// public routes need no key. There are few, and a test knows them by name.
	public bool
	admin  bool
	family family
	status int // of success; 0 is 200
	stream bool
	// upload routes read the body themselves, while it comes.
	upload bool
	// yields is true for our pages where a front end has its own.
	yields bool
	// body is true for a GET that may have one.
	body bool
	// serve handles the request; document describes it.
	serve    func(d *Door, w http.ResponseWriter, r *http.Request, c *call) error
	document func(d *Door, op *huma.Operation)
}

// op makes the two halves of a row from one set of types: P are the path and
// query parameters, B the body, R the answer.
func op[P, B, R any](r route, handle func(d *Door, ctx context.Context, c *call, p P, b B) (R, error)) route {
	params := paramsOf(reflect.TypeFor[P]())
	hasBody := reflect.TypeFor[B]() != reflect.TypeFor[none]()
	r.document = func(d *Door, o *huma.Operation) {
		for _, p := range params {
			o.Parameters = append(o.Parameters, p.document(d.registry))
		}
		if hasBody {
			s := d.registry.Schema(reflect.TypeFor[B](), true, "")
			o.RequestBody = &huma.RequestBody{Content: jsonContent(s), Required: d.required(s)}
		}
		o.Responses[itoa(int64(r.ok()))] = &huma.Response{Description: "Success",
			Content: jsonContent(d.registry.Schema(reflect.TypeFor[R](), true, r.id+"Response"))}
	}
	r.serve = func(d *Door, w http.ResponseWriter, req *http.Request, c *call) error {
		var p P
		var b B
		v := &validator{registry: d.registry}
		bind(v, params, reflect.ValueOf(&p).Elem(), req)
		reportUnknown(w.Header(), params, req)
		var body any
		if hasBody {
			var err error
			if body, err = parse(c.raw); err != nil {
				return err
			}
			v.check(d.bodySchema(r.id, reflect.TypeFor[B]()), body, []any{"body"})
		}
		if len(v.faults) > 0 {
			return &api.ValidationError{Detail: v.faults}
		}
		if hasBody && !plainly(body, &b) {
			if err := decodeInto(c.raw, &b); err != nil {
				return err
			}
		}
		c.header = w.Header()
		out, err := handle(d, req.Context(), c, p, b)
		if err != nil {
			return err
		}
		writeJSON(w, r.ok(), out)
		return nil
	}
	return r
}

// required reports whether a body of this kind cannot be left out: something in it cannot.
func (d *Door) required(s *huma.Schema) bool {
	for s.Ref != "" {
		s = d.registry.SchemaFromRef(s.Ref)
	}
	return len(s.Required) > 0
}

// plainly fills b from what was parsed for the validator, if b can and it is simple enough.
func plainly(body, b any) bool {
	object, _ := body.(map[string]any)
	p, can := b.(interface{ Plain(map[string]any) bool })
	return can && object != nil && p.Plain(object)
}

// raw makes a row whose handler writes the answer itself: streams and pages.
func raw(r route, document func(o *huma.Operation), serve func(d *Door, w http.ResponseWriter, req *http.Request, c *call) error) route {
	r.serve = serve
	r.document = func(d *Door, o *huma.Operation) {
		for _, name := range wildcards(r.path) {
			s := &huma.Schema{Type: huma.TypeString}
			if name == "conversation_id" {
				s.MinLength, s.MaxLength, s.Pattern = ptr(1), ptr(session.MaxIDLength), "^[A-Za-z0-9_-]+$"
			}
			o.Parameters = append(o.Parameters, &huma.Param{Name: name, In: "path", Required: true, Schema: s})
		}
		document(o)
	}
	return r
}

// rawOp is raw with parameters, which are documented and checked as those of op are.
func rawOp[P any](r route, document func(d *Door, o *huma.Operation), serve func(d *Door, w http.ResponseWriter, req *http.Request, c *call, p P) error) route {
	params := paramsOf(reflect.TypeFor[P]())
	r.document = func(d *Door, o *huma.Operation) {
		for _, p := range params {
			o.Parameters = append(o.Parameters, p.document(d.registry))
		}
		document(d, o)
	}
	r.serve = func(d *Door, w http.ResponseWriter, req *http.Request, c *call) error {
		var p P
		v := &validator{registry: d.registry}
		bind(v, params, reflect.ValueOf(&p).Elem(), req)
		reportUnknown(w.Header(), params, req)
		if len(v.faults) > 0 {
			return &api.ValidationError{Detail: v.faults}
		}
		c.header = w.Header()
		return serve(d, w, req, c, p)
	}
	return r
}

func (r route) ok() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

func jsonContent(s *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: s}}
}

// param is a field of a parameter struct: tagged path:"name" or query:"name",
// with default:"…", required:"true" and the constraints the schema generator knows.
type param struct {
	in, name, def string
	required      bool
	field         reflect.StructField
	schema        *huma.Schema
}

func paramsOf(t reflect.Type) []*param {
	var out []*param
	for i := range t.NumField() {
		f := t.Field(i)
		p := &param{field: f, def: f.Tag.Get("default"), required: f.Tag.Get("required") == "true"}
		if p.name = f.Tag.Get("path"); p.name != "" {
			p.in, p.required = "path", true
		} else if p.name = f.Tag.Get("query"); p.name != "" {
			p.in = "query"
		} else {
			panic("parameter without a place: " + f.Name)
		}
		bare := f // the generator would make its own sense of a default
		bare.Tag = reflect.StructTag(strings.ReplaceAll(string(f.Tag), "default:", "x-default:"))
		p.schema = huma.SchemaFromField(newRegistry(), bare, "")
		p.schema.Nullable = false
		out = append(out, p)
	}
	return out
}

func (p *param) document(huma.Registry) *huma.Param {
	s := *p.schema
	if p.def != "" {
		s.Default = p.parse(p.def)
		if n, ok := s.Default.(number); ok {
			s.Default = json.Number(n)
		}
	}
	return &huma.Param{Name: p.name, In: p.in, Required: p.required, Description: p.schema.Description, Schema: &s}
}

// parse turns text into what the validator takes: parameters have no types of their own.
func (p *param) parse(text string) any {
	switch p.schema.Type {
	case huma.TypeInteger, huma.TypeNumber:
		return number(text)
	case huma.TypeBoolean:
		switch strings.ToLower(text) {
		case "true", "1":
			return true
		case "false", "0":
			return false
		}
	}
	return text
}

// bind fills the parameter struct and collects complaints.
func bind(v *validator, params []*param, dst reflect.Value, r *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // what cannot be read would be left out silently, and the request mean something else
		v.add([]any{"query"}, "value_error", "The query string is not valid: escape percent signs and semicolons.")
	}
	for i, p := range params {
		text, given := r.PathValue(p.name), true
		if p.in == "query" {
			given = query.Has(p.name)
			text = query.Get(p.name)
			if len(query[p.name]) > 1 {
				v.add([]any{p.in, p.name}, "value_error", "Send this parameter once.")
				continue
			}
		}
		if !given && p.required {
			v.add([]any{p.in, p.name}, "missing", "This parameter is required.")
			continue
		}
		if !given || text == "" && p.schema.Type != huma.TypeString {
			if text = p.def; text == "" {
				continue
			}
		}
		x := p.parse(text)
		before := len(v.faults)
		if n, ok := x.(number); ok && !isNumber(string(n)) {
			x = string(n)
		}
		v.check(p.schema, x, []any{p.in, p.name})
		if len(v.faults) == before {
			set(dst.Field(i), x)
		}
	}
}

// ignoredHeader names the query parameters of a request that mean nothing here.
const ignoredHeader = "X-Ignored-Parameters"

// maxReported bounds what is repeated of them.
const maxReported = 20

// reportUnknown tells a client of parameters that it misspelt, or that older clients
// send. They are no error: nothing depends on them.
func reportUnknown(h http.Header, params []*param, r *http.Request) {
	if r.URL.RawQuery == "" {
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return // bind says so
	}
	for _, p := range params {
		if p.in == "query" {
			delete(query, p.name)
		}
	}
	names := slices.Sorted(maps.Keys(query))
	names = names[:min(len(names), maxReported)]
	for i, name := range names {
		names[i] = url.QueryEscape(name[:min(len(name), 64)])
	}
	if len(names) > 0 {
		h.Set(ignoredHeader, strings.Join(names, ", "))
	}
}

func isNumber(s string) bool {
	var n int64
	_, err := fmt.Sscanf(s, "%d", &n)
	return err == nil && fmt.Sprint(n) == s
}

// set stores a validated value in a field: string, bool, int64 or a pointer to one.
func set(f reflect.Value, x any) {
	if f.Kind() == reflect.Pointer {
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	switch x := x.(type) {
	case string:
		f.SetString(x)
	case bool:
		f.SetBool(x)
	case number:
		var n int64
		_, _ = fmt.Sscanf(string(x), "%d", &n)
		f.SetInt(n)
	}
}

func wildcards(path string) []string {
	var out []string
	for part := range strings.SplitSeq(path, "/") {
		if name := strings.Trim(part, "{}.$"); strings.HasPrefix(part, "{") && name != "" { // {$} is the end of a path, not a parameter
			out = append(out, name)
		}
	}
	return out
}
