package packed

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"deckhand/internal/session"
)

// fill sets all fields of v, so that the test covers fields that are added later.
func fill(v reflect.Value, text string, raw json.RawMessage) {
	switch v.Kind() {
	case reflect.Pointer: // payloads with one are not kept
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text, raw)
		}
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes(raw)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), text, raw)
		}
	default:
		panic("fill does not know " + v.Type().String())
	}
}

// The events of an append that are kept in memory equal those that the store returns.
func TestAppendedIsAsStored(t *testing.T) {
	t.Parallel()
	check := func(p session.Payload) (kept bool) {
		t.Helper()
		b, err := session.Encode(p)
		if err != nil {
			return false
		}
		want, err := session.Decode(p.Kind(), b)
		if err != nil {
			t.Fatal(err)
		}
		if own, err := Encode(p); err != nil || !bytes.Equal(own, b) {
			t.Errorf("%s: encoded as %s (%v), want %s", p.Kind(), own, err, b)
		}
		got, ok := asStored(p)
		if ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v in memory, %+v stored", p.Kind(), got, want)
		}
		return ok
	}
	kept := 0
	for _, p := range session.Payloads() {
		if !check(p) {
			continue
		}
		kept++
		for _, text := range []string{"plain", "<a> & \u2028 \x00 \" é 🙂", "invalid \xff"} {
			for _, raw := range []string{`{"a":1}`, "{ \"a\" : \"<b> \u2029 &\" }", "[]", "null", "{\"a\": \"\xff\"}"} {
				v := reflect.New(reflect.TypeOf(p)).Elem()
				fill(v, text, json.RawMessage(raw))
				check(v.Interface().(session.Payload))
			}
		}
		empty := reflect.New(reflect.TypeOf(p)).Elem()
		for i := range empty.NumField() {
			if f := empty.Field(i); f.Kind() == reflect.Slice && f.Type() != reflect.TypeFor[json.RawMessage]() {
				f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			}
		}
		check(empty.Interface().(session.Payload))
	}
	if kept != 15 {
		t.Errorf("%d kinds are kept, want 15", kept)
	}
	called := session.ModelAnswered{ToolCalls: []session.ToolCall{{ID: "a", Name: "b", Args: json.RawMessage(`{ }`)}}}
	if !check(called) || string(called.ToolCalls[0].Args) != "{ }" {
		t.Errorf("the payload that was appended became %+v", called)
	}
}
