package v0_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/v0"
)

// canary is a secret with characters that JSON writes in several ways.
const canary = "c4n\"ry/<s3cret>\\ü\nof-42"

// Whatever stands in the fields of an event, what becomes of it is one line of JSON
// with the envelope that clients rely on. And since Encode takes arguments apart and
// puts them together anew: it brings nothing to light that was masked in the event.
func TestEveryFrameIsWholeAndMasked(t *testing.T) {
	redactor := secret.NewRedactor()
	redactor.Add(canary)
	cases := allCases()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(cases).Draw(t, "case")
		text := func() string {
			s := rapid.OneOf(rapid.StringN(0, 12, -1), rapid.Just("x\x00\xff\u2028")).Draw(t, "text")
			return redactor.String(s + rapid.SampledFrom([]string{"", canary, canary + canary}).Draw(t, "secret"))
		}
		e := c.event()
		e.Payload = refilled(reflect.ValueOf(c.give), text).Interface().(session.Payload)
		f, err := v0.Encode(convo, e)
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == v0.None {
			return
		}
		var got map[string]any
		if err := json.Unmarshal(f.JSON, &got); err != nil || bytes.ContainsAny(f.JSON, "\r\n") {
			t.Fatalf("%v: %q", err, f.JSON)
		}
		for _, form := range []string{canary, quoted(canary), strings.Trim(quoted(quoted(canary)), `"`)} {
			if bytes.Contains(f.JSON, []byte(form)) {
				t.Fatalf("%s shows a secret: %q", c.name, f.JSON)
			}
		}
		if f.Kind == v0.Status {
			if got["status_update"] != true || got["type"] == nil || got["message"] == nil {
				t.Fatalf("%s: %q", c.name, f.JSON)
			}
			return
		}
		_, action := got["action"].(string)
		_, observation := got["observation"].(string)
		stamp, _ := got["timestamp"].(string)
		if got["id"] != 14.0 || !zoned.MatchString(stamp) || action == observation {
			t.Fatalf("%s: %q", c.name, f.JSON)
		}
		if _, past := c.give.(session.Imported); !past && !slices.Contains([]any{"agent", "user", "environment"}, got["source"]) {
			t.Fatalf("%s: %q", c.name, f.JSON)
		}
	})
}

// quoted is a text inside a JSON string.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// refilled is a copy of a payload with other texts in it. What is JSON stays JSON,
// with the same keys: a kind is told by them.
func refilled(v reflect.Value, text func() string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && !slices.Contains(names(), v.String()) {
			out.SetString(text())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(refilled(v.Field(i), text))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(refilled(v.Elem(), text))
		}
	case reflect.Slice:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			out.SetBytes(rewritten(raw, text))
			return out
		}
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(refilled(v.Index(i), text))
			}
		}
	}
	return out
}

// names are the texts that decide about the form of an event and are not written by
// anybody else.
func names() []string { return append(tool.Names(), session.ForSummary, "knowledge") }

// rewritten is JSON with other texts in it, or no JSON at all if it was none.
func rewritten(raw json.RawMessage, text func() string) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	b, err := json.Marshal(revalued(v, text))
	if err != nil {
		return raw
	}
	return b
}

func revalued(v any, text func() string) any {
	switch v := v.(type) {
	case string:
		return text()
	case []any:
		for i := range v {
			v[i] = revalued(v[i], text)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if k != "action" && k != "observation" {
				v[k] = revalued(v[k], text)
			}
		}
	}
	return v
}
