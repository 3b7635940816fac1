package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"deckhand/api"
)

// judge evaluates values against the published document. It shares no code
// with the server: a client author who reads only the document would write this.
type judge struct{ schemas map[string]any }

func (j judge) resolve(s map[string]any) map[string]any {
	for s["$ref"] != nil {
		s = j.schemas[strings.TrimPrefix(s["$ref"].(string), "#/components/schemas/")].(map[string]any)
	}
	return s
}

func (j judge) valid(s map[string]any, v any) bool {
	s = j.resolve(s)
	if alternatives := anyList(s["anyOf"]); alternatives != nil &&
		!slices.ContainsFunc(alternatives, func(a any) bool { return j.valid(a.(map[string]any), v) }) {
		return false
	}
	if types := typesOf(s); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isType(t, v) }) {
		return false
	}
	if enum := anyList(s["enum"]); enum != nil && v != nil && !slices.ContainsFunc(enum, func(e any) bool { return fmt.Sprint(e) == fmt.Sprint(v) }) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return j.object(s, v)
	case []any:
		if most, ok := s["maxItems"].(float64); ok && float64(len(v)) > most {
			return false
		}
		items, ok := s["items"].(map[string]any)
		return !ok || !slices.ContainsFunc(v, func(x any) bool { return !j.valid(items, x) })
	case string:
		n := float64(utf8.RuneCountInString(v))
		least, _ := s["minLength"].(float64)
		if most, ok := s["maxLength"].(float64); ok && n > most || n < least {
			return false
		}
		pattern, ok := s["pattern"].(string)
		return !ok || regexp.MustCompile(pattern).MatchString(v)
	case float64:
		if least, ok := s["minimum"].(float64); ok && v < least {
			return false
		}
		most, ok := s["maximum"].(float64)
		return !ok || v <= most
	}
	return true
}

func (j judge) object(s, v map[string]any) bool {
	for _, name := range anyList(s["required"]) {
		if _, ok := v[name.(string)]; !ok {
			return false
		}
	}
	props, _ := s["properties"].(map[string]any)
	for name, x := range v {
		if p, ok := props[name]; ok {
			if !j.valid(p.(map[string]any), x) {
				return false
			}
			continue
		}
		switch extra := s["additionalProperties"].(type) {
		case bool:
			if !extra {
				return false
			}
		case map[string]any:
			if !j.valid(extra, x) {
				return false
			}
		}
	}
	return true
}

func typesOf(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, x := range t {
			out = append(out, x.(string))
		}
		return out
	}
	return nil
}

func isType(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == float64(int64(v))
	case []any:
		return name == "array"
	}
	return name == "object"
}

// arbitrary is a value of no schema in particular.
func arbitrary(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth > 0 {
			kinds = 8
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return float64(rapid.IntRange(-3, 100_002).Draw(t, "int"))
		case 3:
			return float64(rapid.IntRange(-7, 7).Draw(t, "halves")) + 0.5
		case 4, 5:
			return rapid.SampledFrom([]string{"", "x", "en", "github", "https://h.example/", "**********", strings.Repeat("a", 101), strings.Repeat("z", 2100)}).Draw(t, "text")
		case 6:
			return rapid.SliceOfN(arbitrary(depth-1), 0, 3).Draw(t, "list")
		}
		out := map[string]any{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"url", "token", "name", "x", "secret"}), 0, 3).Draw(t, "names") {
			out[name] = arbitrary(depth-1).Draw(t, name)
		}
		return out
	})
}

// fitting is a value of the schema, mostly: here and there something else.
func (j judge) fitting(t *rapid.T, s map[string]any, depth int) any {
	if rapid.IntRange(0, 24).Draw(t, "mutate") == 0 || depth <= 0 {
		return arbitrary(1).Draw(t, "instead")
	}
	s = j.resolve(s)
	if alternatives := anyList(s["anyOf"]); alternatives != nil {
		return j.fitting(t, rapid.SampledFrom(alternatives).Draw(t, "which").(map[string]any), depth)
	}
	types := typesOf(s)
	if len(types) == 0 {
		return arbitrary(1).Draw(t, "free")
	}
	if enum := anyList(s["enum"]); enum != nil {
		return rapid.SampledFrom(enum).Draw(t, "enum")
	}
	switch rapid.SampledFrom(types).Draw(t, "type") {
	case "null":
		return nil
	case "boolean":
		return rapid.Bool().Draw(t, "bool")
	case "integer":
		return float64(rapid.IntRange(0, 20).Draw(t, "int"))
	case "number":
		return rapid.Float64Range(0, 9).Draw(t, "number")
	case "string":
		return rapid.SampledFrom([]string{"en", "x", "a-b_9", "https://h.example/mcp", "debian:13", "ada@example.org", "team/app"}).Draw(t, "text")
	case "array":
		items, _ := s["items"].(map[string]any)
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			out = append(out, j.fitting(t, items, depth-1))
		}
		return out
	}
	return j.objectOf(t, s, depth)
}

func (j judge) objectOf(t *rapid.T, s map[string]any, depth int) any {
	out := map[string]any{}
	props, _ := s["properties"].(map[string]any)
	required := anyList(s["required"])
	for _, name := range slices.Sorted(maps.Keys(props)) {
		always := slices.Contains(required, any(name)) && rapid.IntRange(0, 15).Draw(t, "drop") > 0
		if always || rapid.IntRange(0, 3).Draw(t, "take") == 0 {
			out[name] = j.fitting(t, props[name].(map[string]any), depth-1)
		}
	}
	if extra, ok := s["additionalProperties"].(map[string]any); ok {
		for _, name := range []string{"github", "NAME"} {
			if rapid.Bool().Draw(t, name) {
				out[name] = j.fitting(t, extra, depth-1)
			}
		}
	}
	if rapid.IntRange(0, 30).Draw(t, "extra") == 0 {
		out["surprise"] = arbitrary(1).Draw(t, "surprise")
	}
	return out
}

// decodingFaults are complaints about types and names. For a value that the
// document allows, they would mean that the server knows other types than it tells.
var decodingFaults = []string{"json_invalid", "string_type", "int_type", "float_type", "bool_type", "list_type", "dict_type", "object_type", "model_type", "type_error", "missing"}

// What the document promises and what the server enforces are the same: a value
// that the document forbids is always a 422, and one that it allows is refused
// for its meaning only.
func TestOpenAPIDecides(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.create(`{"conversation_id":"` + open + `"}`)
	doc := document(t)
	j := judge{at(t, doc, "components", "schemas").(map[string]any)}
	targets := []struct{ path, method, to string }{
		{"/api/conversations", "POST", toCreate}, {"/api/conversations/{conversation_id}", "PATCH", toOpen}, {"/api/conversations/{conversation_id}/message", "POST", toOpen + "/message"},
		{"/api/conversations/{conversation_id}/start", "POST", toOpen + "/start"}, {"/api/keys", "POST", toKeys}, {"/api/settings", "POST", toSettings}, // last: it decides on the others
	}
	verdicts := map[string]int{}
	for _, target := range targets {
		path := target.path
		schema := at(t, doc, "paths", path, strings.ToLower(target.method), "requestBody", "content", "application/json", "schema").(map[string]any)
		rapid.Check(t, func(rt *rapid.T) {
			value := j.fitting(rt, schema, 6)
			body, err := json.Marshal(value)
			if err != nil {
				rt.Fatal(err)
			}
			allowed := j.valid(schema, value)
			a := r.do(target.method, target.to, string(body))
			verdicts[fmt.Sprintf("%s %t %d", path, allowed, a.status)]++
			if !allowed && a.status != 422 {
				rt.Fatalf("%s: the document forbids %s, the server answers %d %s", path, body, a.status, a.body)
			}
			if a.status != 422 || !allowed {
				return
			}
			for _, f := range decoded[api.ValidationError](t, a).Detail {
				if slices.Contains(decodingFaults, f.Type) && (f.Type != "json_invalid" || len(f.Loc) == 1) { // a string may have to hold JSON
					rt.Fatalf("%s: the document allows %s, the server refuses: %+v", path, body, f)
				}
			}
		})
	}
	for _, target := range targets { // a generator that only makes nonsense, or none, proves nothing
		path := target.path
		if verdicts[path+" true 200"]+verdicts[path+" true 201"] == 0 || verdicts[path+" false 422"] == 0 {
			t.Errorf("%s: one side was never tried: %v", path, verdicts)
		}
	}
}
