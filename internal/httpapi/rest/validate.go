package rest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
)

// validator holds a value against a schema of the document. The library that
// makes the document has one of its own, but that lets null pass for optional
// fields and repeats the offending value in its messages; ours does neither.
type validator struct {
	registry huma.Registry
	faults   []api.FieldError
}

func (v *validator) add(path []any, typ, msg string) {
	if len(v.faults) < api.MaxFaults {
		v.faults = append(v.faults, api.FieldError{Loc: slices.Clone(path), Msg: msg, Type: typ})
	}
}

func (v *validator) check(s *huma.Schema, x any, path []any) {
	for s.Ref != "" {
		s = v.registry.SchemaFromRef(s.Ref)
	}
	if len(s.AnyOf) > 0 {
		v.anyOf(s.AnyOf, x, path)
		return
	}
	if x == nil {
		if !s.Nullable && s.Type != "null" && s.Type != "" {
			v.add(path, "none_forbidden", "Must not be null. Omit the field or send a value.")
		}
		return
	}
	switch s.Type {
	case huma.TypeObject:
		v.object(s, x, path)
	case huma.TypeArray:
		v.array(s, x, path)
	case huma.TypeString:
		v.text(s, x, path)
	case huma.TypeBoolean:
		if _, ok := x.(bool); !ok {
			v.add(path, "bool_type", "Must be true or false.")
		}
	case huma.TypeInteger, huma.TypeNumber:
		v.number(s, x, path)
	case "null":
		v.add(path, "none_required", "Must be null.")
	}
}

// anyOf reports the complaints of the alternative that fits the value's JSON type.
func (v *validator) anyOf(alternatives []*huma.Schema, x any, path []any) {
	var fitting, names []string
	var best []api.FieldError
	for _, s := range alternatives {
		for s.Ref != "" {
			s = v.registry.SchemaFromRef(s.Ref)
		}
		names = append(names, kindName(s))
		if !fits(s, x) {
			continue
		}
		try := &validator{registry: v.registry}
		try.check(s, x, path)
		if len(try.faults) == 0 {
			return
		}
		fitting, best = append(fitting, s.Type), try.faults
	}
	if len(fitting) > 0 {
		v.faults = append(v.faults, best[:min(len(best), api.MaxFaults-len(v.faults))]...)
		return
	}
	if x == nil {
		v.add(path, "none_forbidden", "Must not be null. Omit the field or send a value.")
		return
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "null" })
	v.add(path, "type_error", "Must be "+strings.Join(names, " or ")+".")
}

func fits(s *huma.Schema, x any) bool {
	switch x.(type) {
	case nil:
		return s.Nullable || s.Type == "null"
	case map[string]any:
		return s.Type == huma.TypeObject
	case []any:
		return s.Type == huma.TypeArray
	case string:
		return s.Type == huma.TypeString
	case bool:
		return s.Type == huma.TypeBoolean
	}
	return s.Type == huma.TypeNumber || s.Type == huma.TypeInteger
}

func kindName(s *huma.Schema) string {
	switch s.Type {
	case huma.TypeObject:
		return "an object"
	case huma.TypeArray:
		return "a list"
	case huma.TypeString:
		return "a string"
	case huma.TypeBoolean:
		return "true or false"
	case huma.TypeInteger, huma.TypeNumber:
		return "a number"
	}
	return "null"
}

func (v *validator) object(s *huma.Schema, x any, path []any) {
	m, ok := x.(map[string]any)
	if !ok {
		v.add(path, "object_type", "Must be an object.")
		return
	}
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			v.add(append(path, name), "missing", "This field is required.")
		}
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names) // the same request gets the same answer
	for _, name := range names {
		at := append(path, name)
		if p, ok := s.Properties[name]; ok {
			v.check(p, m[name], at)
			continue
		}
		switch extra := s.AdditionalProperties.(type) {
		case *huma.Schema:
			v.check(extra, m[name], at)
		case bool:
			if !extra {
				v.add(at, "extra_forbidden", "Unknown field.")
			}
		}
	}
}

func (v *validator) array(s *huma.Schema, x any, path []any) {
	list, ok := x.([]any)
	if !ok {
		v.add(path, "list_type", "Must be a list.")
		return
	}
	if s.MaxItems != nil && len(list) > *s.MaxItems {
		v.add(path, "too_long", fmt.Sprintf("Must have at most %d entries.", *s.MaxItems))
		return
	}
	for i, item := range list {
		if s.Items != nil {
			v.check(s.Items, item, append(path, i))
		}
	}
}

func (v *validator) text(s *huma.Schema, x any, path []any) {
	text, ok := x.(string)
	if !ok {
		v.add(path, "string_type", "Must be a string.")
		return
	}
	if len(s.Enum) > 0 && !slices.Contains(allowed(s), any(text)) {
		v.add(path, "literal_error", "Must be one of "+Choices(allowed(s))+".")
		return
	}
	n := utf8.RuneCountInString(text)
	switch {
	case strings.ContainsRune(text, 0): // not every database can store it, nor any environment hold it
		v.add(path, "value_error", "NUL characters are not allowed.")
	case s.MinLength != nil && n < *s.MinLength && *s.MinLength == 1:
		v.add(path, "string_too_short", "Must not be empty.")
	case s.MinLength != nil && n < *s.MinLength:
		v.add(path, "string_too_short", fmt.Sprintf("Must have at least %d characters.", *s.MinLength))
	case s.MaxLength != nil && n > *s.MaxLength:
		v.add(path, "string_too_long", fmt.Sprintf("Must have at most %d characters.", *s.MaxLength))
	case s.Pattern != "" && !pattern(s.Pattern).MatchString(text):
		v.add(path, "string_pattern_mismatch", "Must match "+s.Pattern+".")
	}
}

func (v *validator) number(s *huma.Schema, x any, path []any) {
	n, ok := x.(number)
	if !ok {
		if s.Type == huma.TypeInteger {
			v.add(path, "int_type", "Must be an integer.")
		} else {
			v.add(path, "float_type", "Must be a number.")
		}
		return
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) {
		v.add(path, "finite_number", "The number is too large.")
		return
	}
	if s.Type == huma.TypeInteger {
		if _, err := strconv.ParseInt(string(n), 10, 64); err != nil {
			v.add(path, "int_type", "Must be an integer without decimal point or exponent.")
			return
		}
	}
	switch {
	case len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return fmt.Sprint(e) == string(n) }):
		v.add(path, "literal_error", "Must be one of "+Choices(s.Enum)+".")
	case s.Minimum != nil && f < *s.Minimum:
		v.add(path, "greater_than_equal", "Must be at least "+trim(*s.Minimum)+".")
	case s.Maximum != nil && f > *s.Maximum:
		v.add(path, "less_than_equal", "Must be at most "+trim(*s.Maximum)+".")
	}
}

// Choices lists the values of an enum.
func Choices(enum []any) string {
	parts := make([]string, len(enum))
	for i, e := range enum {
		parts[i] = fmt.Sprint(e)
	}
	return strings.Join(parts, ", ")
}

func trim(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

var patterns sync.Map // of *regexp.Regexp, by text

func pattern(text string) *regexp.Regexp {
	if re, ok := patterns.Load(text); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(text)
	patterns.Store(text, re)
	return re
}
