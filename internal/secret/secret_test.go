package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const canary = "sk-canary-0123456789-Zz"

func TestSecretCannotBePrinted(t *testing.T) {
	s := New(canary)
	type holder struct {
		Name   string
		Secret Secret
		hidden Secret
		Ptr    *Secret
		Map    map[string]Secret
	}
	h := holder{Name: "n", Secret: s, hidden: s, Ptr: &s, Map: map[string]Secret{"k": s}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%c", "%20s", "%.3s", "%!"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", &s)
		fmt.Fprintf(&out, verb+"\n", h)
		fmt.Fprintf(&out, verb+"\n", []Secret{s})
	}
	out.WriteString(fmt.Sprint(s, h) + s.String() + s.GoString())
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(handler).Info("m", "a", s, "b", &s, "c", h, "d", []Secret{s}, slog.Group("g", "x", s))
	}
	for _, v := range []any{s, &s, h, []Secret{s}, map[string]any{"x": s}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	text, _ := s.MarshalText()
	out.Write(text)
	for _, form := range writtenForms(canary) {
		if strings.Contains(out.String(), form) {
			t.Errorf("the output has the secret as %q", form)
		}
	}
	if !strings.Contains(out.String(), Mask) {
		t.Error("the output has no mask")
	}
}

func TestSecretValue(t *testing.T) {
	if s := New(canary); s.Reveal() != canary || s.IsZero() {
		t.Error("New and Reveal do not match")
	}
	for _, s := range []Secret{{}, New("")} {
		if !s.IsZero() || s.Reveal() != "" {
			t.Error("an empty secret is not zero")
		}
	}
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"a", "a", true}, {"", "", true}, {"a", "b", false}, {"a", "", false}, {"a", "aa", false}} {
		if got := New(tt.a).Equal(New(tt.b)); got != tt.want {
			t.Errorf("Equal(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}

func TestMasterCannotBePrinted(t *testing.T) {
	key := bytes.Repeat([]byte("K3y!"), 8)
	m, err := newMaster(key)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(m)
	out := fmt.Sprintf("%v %+v %#v %s %x %s", m, m, m, m, m, b)
	for _, form := range writtenForms(string(key)) {
		if strings.Contains(out, form) {
			t.Error("the output has the master key")
		}
	}
}
