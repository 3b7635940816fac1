package logtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckhand/internal/session"
)

// payloads: every kind comes back as it was stored, whatever its fields hold.
func payloads(t *testing.T, s Store) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		st := session.State{ID: session.ID(fmt.Sprint("s", n))}
		var want []session.Payload
		for _, p := range session.Payloads() {
			v := reflect.New(reflect.TypeOf(p)).Elem()
			fill(rt, v, string(p.Kind()))
			if p.Kind() != session.KindDeleted { // it would drop the others
				want = append(want, v.Interface().(session.Payload))
			}
		}
		b, st := grow(st, want...)
		if err := s.Append(t.Context(), b); err != nil {
			rt.Fatal(err)
		}
		got, err := collect(t.Context(), s, st.ID, 0)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(b.Events, got); diff != "" {
			rt.Fatalf("events (-want +got):\n%s", shorten(diff))
		}
	})
	st, _ := begin(t, s, "deleted", 0)
	b, _ := grow(st, session.Deleted{})
	must(t, s.Append(t.Context(), b))
	same(t, "events", read(t, s, "deleted", 0), b.Events)
}

// documents are JSON in its shortest form: a store need not keep white space.
var documents = []string{`{"k":[1,2.5,"x",null,true]}`, `"text"`, `[]`, `{}`, `17`}

// fill sets every field, at random to its zero value or to something else.
func fill(rt *rapid.T, v reflect.Value, name string) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		if rapid.Bool().Draw(rt, name) {
			v.SetBytes([]byte(rapid.SampledFrom(documents).Draw(rt, name)))
		}
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() { // with the precision of every time in a log
		if rapid.Bool().Draw(rt, name) {
			at := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(rt, name)).UTC()
			v.Set(reflect.ValueOf(at))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if rapid.Bool().Draw(rt, name) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(rt, v.Elem(), name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rt, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.Just(""), rapid.Just("<&>\x00\u2028'\"\\%_ü😀"), rapid.String()).Draw(rt, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(rt, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(rt, name))
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(rt, name)
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(rt, v.Index(i), fmt.Sprint(name, "[", i, "]"))
		}
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(rt, name)))
	default:
		rt.Fatalf("%s: logtest cannot fill a %s; teach it", name, v.Type())
	}
}
