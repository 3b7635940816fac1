package schema

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// types are the types of JSON schemas.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// The keywords of JSON schemas by the form of their values.
var (
	schemas    = []string{"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	lists      = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	named      = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
	counts     = []string{"maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"}
	numbers    = []string{"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"}
	otherWords = []string{"$ref", "const", "dependencies", "dependentRequired", "enum", "format", "pattern", "required", "type", "uniqueItems"}
)

// fault returns the first fault of a decoded schema, nil if it has none.
func fault(root any) error {
	if m, ok := root.(map[string]any); ok && len(m) > 0 {
		known := slices.Concat(schemas, lists, named, counts, numbers, otherWords)
		if !slices.ContainsFunc(known, func(word string) bool { _, ok := m[word]; return ok }) {
			return errors.New("it has no keyword of JSON schemas, such as type or properties")
		}
	}
	return check(root, "#")
}

// check checks a schema at a JSON pointer.
func check(v any, at string) error {
	if _, ok := v.(bool); ok {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s must be an object or a boolean", at)
	}
	for _, word := range slices.Sorted(maps.Keys(m)) {
		if err := keyword(word, m[word], at+"/"+word); err != nil {
			return err
		}
	}
	return nil
}

// keyword checks the value of a keyword.
func keyword(word string, v any, at string) error {
	list, isList := v.([]any)
	number, isNumber := v.(float64)
	switch {
	case word == "type":
		return typeFault(v, at)
	case word == "required":
		if !isList || slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok }) {
			return fmt.Errorf("%s must be a list of property names", at)
		}
	case word == "enum" && !isList:
		return fmt.Errorf("%s must be a list of values", at)
	case word == "items" && isList, slices.Contains(lists, word) && isList && len(list) > 0:
		for i, one := range list {
			if err := check(one, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
	case slices.Contains(lists, word):
		return fmt.Errorf("%s must be a list of schemas", at)
	case slices.Contains(schemas, word):
		return check(v, at)
	case slices.Contains(named, word):
		all, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s must be an object of schemas", at)
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if err := check(all[name], at+"/"+name); err != nil {
				return err
			}
		}
	case slices.Contains(numbers, word) && !isNumber:
		return fmt.Errorf("%s must be a number", at)
	case slices.Contains(counts, word) && (!isNumber || number < 0 || number != math.Trunc(number)):
		return fmt.Errorf("%s must be a whole number that is not negative", at)
	}
	return nil
}

// typeFault checks the value of type.
func typeFault(v any, at string) error {
	all, ok := v.([]any)
	if !ok {
		all = []any{v}
	}
	for _, one := range all {
		if name, ok := one.(string); !ok || !slices.Contains(types, name) {
			return fmt.Errorf("%s: %v is not a type; use one of %s", at, one, strings.Join(types, ", "))
		}
	}
	return nil
}
