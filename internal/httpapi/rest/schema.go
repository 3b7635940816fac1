package rest

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
)

// newRegistry makes schemas of Go types. The types of package api know nothing
// of OpenAPI, so what reflection alone gets wrong is said here.
func newRegistry() huma.Registry {
	r := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	alias[string](r)
	alias[bool](r)
	alias[int](r)
	alias[int64](r)
	alias[float64](r)
	alias[[]string](r)
	alias[map[string]any](r)
	alias[api.MCPConfig](r)
	alias[api.UserSecrets](r)
	alias[api.SuggestedTask](r)
	alias[api.Solvability](r)
	alias[api.CreateMicroagent](r)
	alias[map[string]string](r)
	alias[api.EventFilter](r)
	alias[api.QuietHours](r)
	return &registry{Registry: r, filled: map[*huma.Schema]bool{}}
}

// alias makes api.Opt[T] look like T or null.
func alias[T any](r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[api.Opt[T]](), reflect.TypeFor[nullable[T]]())
}

type nullable[T any] struct{}

// Schema implements huma.SchemaProvider. Whether a field refuses null after
// all is a tag (nullable:"false") on the field.
func (nullable[T]) Schema(r huma.Registry) *huma.Schema {
	s := r.Schema(reflect.TypeFor[T](), true, "")
	if s.Ref != "" {
		return &huma.Schema{AnyOf: []*huma.Schema{s, {Type: "null"}}}
	}
	c := *s
	c.Nullable = true
	return &c
}

// AlsoAccepted is where a schema lists what is taken beside its enum.
const AlsoAccepted = "x-also-accepted"

// allowed is everything that a schema with an enum takes.
func allowed(s *huma.Schema) []any {
	more, _ := s.Extensions[AlsoAccepted].([]any)
	return append(s.Enum[:len(s.Enum):len(s.Enum)], more...)
}

// Schemas are those of the routes' types. They make the document, and requests are held against them.
type Schemas struct {
	Registry huma.Registry
	// Bodies are the schemas of request bodies by operation, found when the document is made.
	Bodies map[string]*huma.Schema
}

// NewSchemas makes an empty set.
func NewSchemas() *Schemas {
	return &Schemas{Registry: newRegistry(), Bodies: map[string]*huma.Schema{}}
}

// body is the schema of an operation's body.
func (s *Schemas) body(id string, t reflect.Type) *huma.Schema {
	if found := s.Bodies[id]; found != nil {
		return found
	}
	return s.Registry.Schema(t, true, "")
}

// required reports whether a body of this kind cannot be left out: something in it cannot.
func (s *Schemas) required(b *huma.Schema) bool {
	for b.Ref != "" {
		b = s.Registry.SchemaFromRef(b.Ref)
	}
	return len(b.Required) > 0
}

// CheckParams holds a struct of parameters against its own tags, as bind does with those of a request.
func (s *Schemas) CheckParams(p any) error {
	v, from := &validator{registry: s.Registry}, reflect.ValueOf(p)
	for i, param := range paramsOf(from.Type()) {
		switch x := from.Field(i).Interface().(type) {
		case string:
			if x != "" || param.required {
				v.check(param.schema, x, []any{param.in, param.name})
			}
		case int64:
			v.check(param.schema, number(strconv.FormatInt(x, 10)), []any{param.in, param.name})
		}
	}
	return v.err()
}

// CheckBody holds a body against the schema of a route's.
func (s *Schemas) CheckBody(operation string, b any) error {
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	parsed, err := parse(raw)
	if err != nil {
		return err
	}
	v := &validator{registry: s.Registry}
	v.check(s.body(operation, reflect.TypeOf(b)), parsed, []any{"body"})
	return v.err()
}

func (v *validator) err() error {
	if len(v.faults) == 0 {
		return nil
	}
	return &api.ValidationError{Detail: v.faults}
}
