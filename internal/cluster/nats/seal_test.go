package nats

import (
	"strings"
	"testing"
)

// What is sealed can be opened with the same key only.
func TestSeal(t *testing.T) {
	t.Parallel()
	one, err := NewSeal([32]byte{1})
	two, err2 := NewSeal([32]byte{2})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	sealed := one.Seal("s", []byte("what the model writes"))
	if strings.Contains(string(sealed), "model") {
		t.Error("it is readable")
	}
	if plain, ok := one.Open("s", sealed); !ok || string(plain) != "what the model writes" {
		t.Errorf("%q %v", plain, ok)
	}
	if _, ok := two.Open("s", sealed); ok {
		t.Error("another installation reads it")
	}
	if _, ok := one.Open("t", sealed); ok {
		t.Error("it is opened for another subject")
	}
	if _, ok := one.Open("s", []byte("x")); ok {
		t.Error("nonsense is opened")
	}
}
