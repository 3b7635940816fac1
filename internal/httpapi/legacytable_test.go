package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// legacyTable is where the facts about the older server's operations are: what they
// take and what they answer. They were derived from its published document, which
// is not a part of this repository.
var legacyTable = filepath.Join("testdata", "legacy-operations.json")

// legacyDocument is the environment variable that names a copy of the document. With
// it, the tests run on the document itself, and -update writes the table anew.
const legacyDocument = "DECKHAND_LEGACY_OPENAPI"

// legacyOperation is one of its operations.
type legacyOperation struct {
	Method string        `json:"method"`
	Path   string        `json:"path"`
	Params []legacyParam `json:"params,omitempty"`
	Body   *layout       `json:"body,omitempty"`
	// Multipart is true when the body is a form with files.
	Multipart bool `json:"multipart,omitempty"`
	// Answers are what it says, by status.
	Answers map[string]*layout `json:"answers"`
}

func (o legacyOperation) name() string { return o.Method + " " + o.Path }

type legacyParam struct {
	In       string  `json:"in"`
	Name     string  `json:"name"`
	Required bool    `json:"required,omitempty"`
	Layout   *layout `json:"layout"`
}

// layout is what a value looks like.
type layout struct {
	// Type is string, integer, number, boolean, list, map, object or any; with a
	// question mark it may be null.
	Type string   `json:"type"`
	Enum []string `json:"enum,omitempty"`
	// Fields are those of an object, Needs the ones it cannot be without.
	Fields map[string]*layout `json:"fields,omitempty"`
	Needs  []string           `json:"needs,omitempty"`
	// Closed objects have no other fields.
	Closed bool `json:"closed,omitempty"`
	// Each is what a list or map holds.
	Each    *layout `json:"each,omitempty"`
	Default any     `json:"default,omitempty"`
	Least   int     `json:"least,omitempty"` // characters
	Most    int     `json:"most,omitempty"`
}

func (f *layout) kind() (kind string, null bool) {
	return strings.TrimSuffix(f.Type, "?"), strings.HasSuffix(f.Type, "?") || f.Type == "any"
}

// derivation reads the published document.
type derivation struct{ doc map[string]any }

func (d derivation) operations(t *testing.T) []legacyOperation {
	t.Helper()
	var out []legacyOperation
	paths := at(t, d.doc, "paths").(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(item)) {
			out = append(out, d.operation(t, strings.ToUpper(method), path, item[method].(map[string]any)))
		}
	}
	return out
}

func (d derivation) operation(t *testing.T, method, path string, o map[string]any) legacyOperation {
	t.Helper()
	op := legacyOperation{Method: method, Path: path, Answers: map[string]*layout{}}
	for _, x := range anyList(o["parameters"]) {
		p := x.(map[string]any)
		required, _ := p["required"].(bool)
		op.Params = append(op.Params, legacyParam{In: p["in"].(string), Name: p["name"].(string), Required: required, Layout: d.layout(t, p["schema"])})
	}
	if body, ok := o["requestBody"].(map[string]any); ok {
		for kind, content := range body["content"].(map[string]any) {
			op.Body, op.Multipart = d.layout(t, content.(map[string]any)["schema"]), kind == "multipart/form-data"
		}
	}
	for status, x := range o["responses"].(map[string]any) {
		content, _ := x.(map[string]any)["content"].(map[string]any)
		if json, ok := content["application/json"].(map[string]any); ok {
			op.Answers[status] = d.layout(t, json["schema"])
		}
	}
	return op
}

// layout translates a schema, with everything that it refers to.
func (d derivation) layout(t *testing.T, v any) *layout {
	t.Helper()
	s, _ := v.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		f := d.layout(t, pointed(t, d.doc, ref))
		f.Default = s["default"]
		return f
	}
	if alternatives := anyList(s["anyOf"]); len(alternatives) > 0 {
		return d.either(t, s, alternatives)
	}
	f := &layout{Type: "any", Default: s["default"]}
	kind, typed := s["type"].(string)
	if typed {
		f.Type = kind
	}
	for _, e := range anyList(s["enum"]) {
		f.Enum = append(f.Enum, fmt.Sprint(e))
	}
	least, _ := s["minLength"].(float64)
	most, _ := s["maxLength"].(float64)
	f.Least, f.Most = int(least), int(most)
	switch kind {
	case "array":
		f.Type, f.Each = "list", d.layout(t, s["items"])
	case "object":
		d.object(t, f, s)
	}
	return f
}

func (d derivation) object(t *testing.T, f *layout, s map[string]any) {
	t.Helper()
	props, fixed := s["properties"].(map[string]any)
	if !fixed {
		f.Type = "map"
		f.Each = d.layout(t, s["additionalProperties"])
		return
	}
	f.Fields, f.Closed = map[string]*layout{}, s["additionalProperties"] == false
	for name, p := range props {
		f.Fields[name] = d.layout(t, p)
	}
	for _, name := range anyList(s["required"]) {
		f.Needs = append(f.Needs, name.(string))
	}
	slices.Sort(f.Needs)
}

// either is a choice. The document has none but "this or null", and "anything".
func (d derivation) either(t *testing.T, s map[string]any, alternatives []any) *layout {
	t.Helper()
	first := d.layout(t, alternatives[0])
	for _, other := range alternatives[1:] {
		switch kind := d.layout(t, other).Type; {
		case kind == "null" && !strings.HasSuffix(first.Type, "?"):
			first.Type += "?"
		case kind != "null":
			first = &layout{Type: "any"}
		}
	}
	first.Default = s["default"]
	return first
}

// legacyOperations are what the tests run on.
func legacyOperations(t *testing.T) []legacyOperation {
	t.Helper()
	if path := os.Getenv(legacyDocument); path != "" {
		return published(t, path)
	}
	raw, err := os.ReadFile(legacyTable)
	if err != nil {
		t.Fatal(err)
	}
	var ops []legacyOperation
	if err := json.Unmarshal(raw, &ops); err != nil {
		t.Fatal(err)
	}
	return ops
}

// published reads the document. It goes through JSON, so that it compares with the table.
func published(t *testing.T, path string) []legacyOperation {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var ops []legacyOperation
	if err := json.Unmarshal(compact(t, derivation{doc}.operations(t)), &ops); err != nil {
		t.Fatal(err)
	}
	return ops
}

// compact writes one operation per line.
func compact(t *testing.T, ops []legacyOperation) []byte {
	t.Helper()
	lines := make([]string, len(ops))
	for i, op := range ops {
		lines[i] = encoded(t, op)
	}
	return []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n")
}
