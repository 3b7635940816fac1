package box

import (
	"reflect"
	"testing"
)

// fill gives every field of a struct a value that no other has.
func fill(t *testing.T, v reflect.Value, next *int) {
	t.Helper()
	*next++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), next)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(t, v.Index(i), next)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 3 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, next)
			fill(t, value, next)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString("\x00ü" + string(rune('a'+*next)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(*next) << 20)
	case reflect.Uint64:
		v.SetUint(uint64(*next) << 50)
	default:
		t.Fatalf("there is no value for a %s", v.Kind())
	}
}

// No field is forgotten on the way, and what is cut short is refused.
func TestWire(t *testing.T) {
	t.Parallel()
	type message interface {
		Encode() []byte
		Decode([]byte) error
	}
	for _, pair := range [][2]message{{&Setup{}, &Setup{}}, {&Report{}, &Report{}}} {
		sent, got := pair[0], pair[1]
		if err := got.Decode(sent.Encode()); err != nil || !reflect.DeepEqual(got, sent) {
			t.Errorf("empty: %+v, %v", got, err)
		}
		next := 0
		fill(t, reflect.ValueOf(sent).Elem(), &next)
		body := sent.Encode()
		if err := got.Decode(body); err != nil || !reflect.DeepEqual(got, sent) {
			t.Errorf("%+v, %v; wanted %+v", got, err, sent)
		}
		for n := range body {
			if got.Decode(body[:n]) == nil {
				t.Errorf("%d of %d bytes are taken for all of a %T", n, len(body), sent)
			}
		}
		if got.Decode(append(body, 0)) == nil {
			t.Errorf("a byte too many is taken for a part of a %T", sent)
		}
	}
}
