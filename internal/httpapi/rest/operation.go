package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/session"
)

// Call is what a handler knows of its request beside parameters and body.
type Call struct {
	Who  access.Identity
	HTTP *http.Request
	// Header is the answer's.
	Header http.Header
	// Raw is the body as it was sent.
	Raw []byte
	// Bearer is true when the key came as Authorization: Bearer, and Browser when
	// it was a login cookie instead.
	Bearer, Browser bool
	// Session is the conversation that the request made, for the log.
	Session string
	// RetryKey names this request among repeated ones; empty without Idempotency-Key.
	RetryKey string
}

// None is the parameters or body of a route that has none.
type None struct{}

// Route is a row of the table.
type Route struct {
	Method, Path string
	// ID is the operationId; Summary, About and Tag are for readers of the document.
	ID, Summary, About, Tag string
	// May are the errors of its own that readers should know of.
	May []int
	// Public routes need no key. There are few, and a test knows them by name.
	Public bool
	Admin  bool
	Family Family
	Status int // of success; 0 is 200
	Stream bool
	// Upload routes read the body themselves, while it comes.
	Upload bool
	// Yields is true for our pages where a front end has its own.
	Yields bool
	// Body is true for a GET that may have one.
	Body bool
	// Serve handles the request; Document describes it.
	Serve    func(s *Schemas, w http.ResponseWriter, r *http.Request, c *Call) error
	Document func(s *Schemas, o *huma.Operation)
}

// Op makes the two halves of a row from one set of types: P are the path and
// query parameters, B the body, R the answer.
func Op[P, B, R any](r Route, handle func(ctx context.Context, c *Call, p P, b B) (R, error)) Route {
	params := paramsOf(reflect.TypeFor[P]())
	hasBody := reflect.TypeFor[B]() != reflect.TypeFor[None]()
	r.Document = func(s *Schemas, o *huma.Operation) {
		for _, p := range params {
			o.Parameters = append(o.Parameters, p.document())
		}
		if hasBody {
			b := s.Registry.Schema(reflect.TypeFor[B](), true, "")
			o.RequestBody = &huma.RequestBody{Content: JSONContent(b), Required: s.required(b)}
		}
		o.Responses[strconv.FormatInt(int64(r.OK()), 10)] = &huma.Response{Description: "Success",
			Content: JSONContent(s.Registry.Schema(reflect.TypeFor[R](), true, r.ID+"Response"))}
	}
	r.Serve = func(s *Schemas, w http.ResponseWriter, req *http.Request, c *Call) error {
		var p P
		var b B
		v := &validator{registry: s.Registry}
		bind(v, params, reflect.ValueOf(&p).Elem(), req)
		reportUnknown(w.Header(), params, req)
		var body any
		if hasBody {
			var err error
			if body, err = parse(c.Raw); err != nil {
				return err
			}
			v.check(s.body(r.ID, reflect.TypeFor[B]()), body, []any{"body"})
		}
		if len(v.faults) > 0 {
			return &api.ValidationError{Detail: v.faults}
		}
		if hasBody && !plainly(body, &b) {
			if err := decodeInto(c.Raw, &b); err != nil {
				return err
			}
		}
		c.Header = w.Header()
		out, err := handle(req.Context(), c, p, b)
		if err != nil {
			return err
		}
		WriteJSON(w, r.OK(), out)
		return nil
	}
	return r
}

// plainly fills b from what was parsed for the validator, if b can and it is simple enough.
func plainly(body, b any) bool {
	object, _ := body.(map[string]any)
	p, can := b.(interface{ Plain(map[string]any) bool })
	return can && object != nil && p.Plain(object)
}

// Raw makes a row whose handler writes the answer itself: streams and pages.
func Raw(r Route, document func(o *huma.Operation), serve func(w http.ResponseWriter, req *http.Request, c *Call) error) Route {
	r.Serve = func(_ *Schemas, w http.ResponseWriter, req *http.Request, c *Call) error { return serve(w, req, c) }
	r.Document = func(_ *Schemas, o *huma.Operation) {
		for _, name := range Wildcards(r.Path) {
			s := &huma.Schema{Type: huma.TypeString}
			if name == "conversation_id" {
				s.MinLength, s.MaxLength, s.Pattern = new(1), new(session.MaxIDLength), "^[A-Za-z0-9_-]+$"
			}
			o.Parameters = append(o.Parameters, &huma.Param{Name: name, In: "path", Required: true, Schema: s})
		}
		document(o)
	}
	return r
}

// RawOp is Raw with parameters, which are documented and checked as those of Op are.
func RawOp[P any](r Route, document func(r huma.Registry, o *huma.Operation), serve func(w http.ResponseWriter, req *http.Request, c *Call, p P) error) Route {
	params := paramsOf(reflect.TypeFor[P]())
	r.Document = func(s *Schemas, o *huma.Operation) {
		for _, p := range params {
			o.Parameters = append(o.Parameters, p.document())
		}
		document(s.Registry, o)
	}
	r.Serve = func(s *Schemas, w http.ResponseWriter, req *http.Request, c *Call) error {
		var p P
		v := &validator{registry: s.Registry}
		bind(v, params, reflect.ValueOf(&p).Elem(), req)
		reportUnknown(w.Header(), params, req)
		if len(v.faults) > 0 {
			return &api.ValidationError{Detail: v.faults}
		}
		c.Header = w.Header()
		return serve(w, req, c, p)
	}
	return r
}

// OK is the status of success.
func (r Route) OK() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

// JSONContent is the content of a body or answer in JSON.
func JSONContent(s *huma.Schema) map[string]*huma.MediaType {
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
		fill(p.schema)
		out = append(out, p)
	}
	return out
}

func (p *param) document() *huma.Param {
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

// Wildcards are the names of the parameters in a path.
func Wildcards(path string) []string {
	var out []string
	for part := range strings.SplitSeq(path, "/") {
		if name := strings.Trim(part, "{}.$"); strings.HasPrefix(part, "{") && name != "" { // {$} is the end of a path, not a parameter
			out = append(out, name)
		}
	}
	return out
}
