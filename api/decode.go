package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"sort"
	"strings"
)

// faults collects decoding errors, so that one response can list them all.
type faults struct{ list []FieldError }

func (f *faults) add(typ, msg string, path ...any) {
	f.list = append(f.list, FieldError{Loc: path, Msg: msg, Type: typ})
}

func (f *faults) err() error {
	if len(f.list) > 0 {
		return &ValidationError{Detail: f.list}
	}
	return nil
}

// decode decodes raw and records errors under path. Errors of encoding/json are not used,
// because they can quote the value, which may be a secret.
func (f *faults) decode(raw json.RawMessage, into any, path ...any) {
	err := json.Unmarshal(raw, into)
	if err == nil {
		return
	}
	nested, ok := errors.AsType[*ValidationError](err)
	if !ok {
		nested = typeError(into)
	}
	f.list = append(f.list, at(nested, path...).Detail...)
}

func (f *faults) optional(obj map[string]json.RawMessage, name string, into any) {
	if raw, ok := obj[name]; ok {
		delete(obj, name)
		f.decode(raw, into, name)
	}
}

func (f *faults) required(obj map[string]json.RawMessage, name string, into *string) {
	switch raw, ok := obj[name]; {
	case !ok:
		f.add("missing", "This field is required.", name)
	case !isString(raw):
		f.add("string_type", "Send a string.", name)
	default:
		f.decode(raw, into, name)
	}
	delete(obj, name)
}

func (f *faults) extra(obj map[string]json.RawMessage, known string) {
	for _, name := range names(obj) {
		f.add("extra_forbidden", "Unknown field. Known fields: "+known+".", name)
	}
}

func list[T any](f *faults, obj map[string]json.RawMessage, name string, into *[]T) {
	var raws []json.RawMessage
	f.optional(obj, name, &raws)
	for i, raw := range raws {
		var v T
		f.element(raw, &v, name, i)
		*into = append(*into, v)
	}
}

func dict[T any](f *faults, obj map[string]json.RawMessage, name string, into *map[string]T) {
	var raws map[string]json.RawMessage
	f.optional(obj, name, &raws)
	if raws == nil {
		return
	}
	*into = make(map[string]T, len(raws))
	for _, key := range names(raws) {
		var v T
		f.element(raws[key], &v, name, key)
		(*into)[key] = v
	}
}

// element decodes a list or map element. Unlike encoding/json, it accepts null only for
// pointers.
func (f *faults) element(raw json.RawMessage, into any, path ...any) {
	if isNull(raw) && reflect.TypeOf(into).Elem().Kind() != reflect.Pointer {
		f.list = append(f.list, at(typeError(into), path...).Detail...)
		return
	}
	f.decode(raw, into, path...)
}

// at prefixes the location of an error with path.
func at(e *ValidationError, path ...any) *ValidationError {
	out := &ValidationError{Detail: make([]FieldError, len(e.Detail))}
	for i, d := range e.Detail {
		d.Loc = append(append([]any{}, path...), d.Loc...)
		out.Detail[i] = d
	}
	return out
}

func wrongType(typ, msg string) *ValidationError {
	return &ValidationError{Detail: []FieldError{{Msg: msg, Type: typ}}}
}

// typeError names the JSON type that into needs; for an Opt, that of its value.
func typeError(into any) *ValidationError {
	t := reflect.TypeOf(into).Elem()
	if t.Kind() == reflect.Struct {
		if v, ok := t.FieldByName("Null"); ok && v.Type.Kind() == reflect.Bool {
			v, _ = t.FieldByName("Value")
			t = v.Type
		}
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return wrongType("string_type", "Send a string.")
	case reflect.Int:
		return wrongType("int_type", "Send a whole number, without quotes or decimal point.")
	case reflect.Float64:
		return wrongType("float_type", "Send a finite number, without quotes.")
	case reflect.Bool:
		return wrongType("bool_type", "Send true or false, without quotes.")
	case reflect.Slice:
		return wrongType("list_type", "Send a list.")
	default:
		return wrongType("dict_type", "Send an object.")
	}
}

func object(b []byte) (map[string]json.RawMessage, *ValidationError) {
	var obj map[string]json.RawMessage
	if isNull(b) || json.Unmarshal(b, &obj) != nil {
		return nil, wrongType("dict_type", "Send an object.")
	}
	return obj, nil
}

func isString(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte{'"'}) }
func isNull(b []byte) bool   { return string(bytes.TrimSpace(b)) == "null" }

func takeString(obj map[string]json.RawMessage, name string) (s string, ok bool) {
	if raw := obj[name]; !isString(raw) || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	delete(obj, name)
	return s, true
}

func names[T any](m map[string]T) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// splitShell splits a line into words the way a POSIX shell does, without expanding anything.
func splitShell(line string) (words []string, ok bool) {
	var word strings.Builder
	var quote byte
	started := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '\'' && c != quote:
			word.WriteByte(c)
		case c == '\\' && quote == '"':
			if i+1 < len(line) && strings.IndexByte("\"\\$`", line[i+1]) >= 0 {
				i++
			}
			word.WriteByte(line[i])
		case c == '\\':
			if i++; i == len(line) {
				return nil, false
			}
			started = true
			word.WriteByte(line[i])
		case c == quote && quote != 0:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, started = c, true
		case quote == 0 && strings.IndexByte(" \t\r\n", c) >= 0:
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			started = true
			word.WriteByte(c)
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// splitEnv reads K=V,K2=V2.
func splitEnv(line string) (env map[string]string, ok bool) {
	env = map[string]string{}
	for pair := range strings.SplitSeq(line, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		if !found {
			return nil, false
		}
		env[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return env, true
}
