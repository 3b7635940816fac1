package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
)

type stringer struct{ s string }

func (s stringer) String() string { return s.s }

type valuer struct{ s string }

func (v valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("inner", v.s)) }

type record struct {
	Name string
	Data []byte
}

func TestHandlerMasksValues(t *testing.T) {
	var out bytes.Buffer
	r := NewRedactor()
	for name, h := range map[string]slog.Handler{"json": slog.NewJSONHandler(&out, nil), "text": slog.NewTextHandler(&out, nil)} {
		log := slog.New(r.Handler(h))
		early := log.With("early", canary).WithGroup("g").With("more", "a "+canary) // not known yet
		r.Add(canary, "314159265")
		calls := map[string]func(){
			"message":    func() { log.Info("key is " + canary) },
			"string":     func() { log.Info("m", "a", "x"+canary) },
			"error":      func() { log.Info("m", "a", fmt.Errorf("got %w", errors.New(canary))) },
			"stringer":   func() { log.Info("m", "a", stringer{canary}) },
			"bytes":      func() { log.Info("m", "a", []byte(canary)) },
			"struct":     func() { log.Info("m", "a", record{Name: canary}) },
			"json bytes": func() { log.Info("m", "a", record{Data: []byte("12" + canary)}) },
			"pointer":    func() { log.Info("m", "a", &record{Name: canary}) },
			"slice":      func() { log.Info("m", "a", []string{"x", canary}) },
			"group":      func() { log.Info("m", slog.Group("g", "x", 1, slog.Group("h", "y", canary))) },
			"valuer":     func() { log.Info("m", "a", valuer{canary}) },
			"number":     func() { log.Info("m", "a", 314159265) },
			"key":        func() { log.Info("m", canary, 1) },
			"with":       func() { log.With("a", canary).Info("m") },
			"group with": func() { log.WithGroup("g").With("a", 1).Info("m", "b", canary) },
			"early with": func() { early.Info("m") },
		}
		for what, call := range calls {
			out.Reset()
			call()
			if s := out.String(); !strings.Contains(s, Mask) {
				t.Errorf("%s, %s: no mask in %s", name, what, s)
			} else {
				for _, form := range append(writtenForms(canary), "314159265") {
					if strings.Contains(s, form) {
						t.Errorf("%s, %s: %s", name, what, s)
					}
				}
			}
		}
	}
}

func TestHandlerMasksByName(t *testing.T) {
	for _, name := range []string{"api_key", "llm_api_key", "X-Session-API-Key", "token", "accessToken", "Authorization", "password", "client_secret", "Set-Cookie", "cookie"} {
		var out bytes.Buffer
		log := slog.New(NewRedactor().Handler(slog.NewJSONHandler(&out, nil)))
		log.Info("m", name, "qwerty")
		log.Info("m", "headers", http.Header{name: {"qwerty"}})
		log.With(name, "qwerty").Info("m", slog.Group("g", name, []byte("qwerty")))
		if strings.Contains(out.String(), "qwerty") || strings.Count(out.String(), Mask) != 4 {
			t.Errorf("%s: %s", name, out.String())
		}
	}
	var out bytes.Buffer
	log := slog.New(NewRedactor().Handler(slog.NewJSONHandler(&out, nil)))
	log.Info("m", "prompt_tokens", 12, "llm_api_key_set", "yes", "user", "ann", "has_token", true, "took", time.Second, "err", error(nil), "nil", (*record)(nil))
	if strings.Contains(out.String(), Mask) {
		t.Errorf("too much is masked: %s", out.String())
	}
}

func TestHandlerKeepsTheRules(t *testing.T) {
	for _, known := range [][]string{nil, {canary}} {
		var out bytes.Buffer
		r := NewRedactor()
		r.Add(known...)
		err := slogtest.TestHandler(r.Handler(slog.NewJSONHandler(&out, nil)), func() []map[string]any {
			var all []map[string]any
			for dec := json.NewDecoder(&out); ; {
				var m map[string]any
				if dec.Decode(&m) == io.EOF {
					return all
				}
				all = append(all, m)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

type nullHandler struct{}

func (nullHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (nullHandler) Handle(context.Context, slog.Record) error { return nil }
func (h nullHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h nullHandler) WithGroup(string) slog.Handler           { return h }

func BenchmarkHandlerNothingToRedact(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprint(n, " values"), func(b *testing.B) {
			r := NewRedactor()
			for i := range n {
				r.Add(fmt.Sprintf("sk-proj-%d-%s", i, canary))
			}
			log := slog.New(r.Handler(nullHandler{})).With("component", "bench")
			b.ReportAllocs()
			for b.Loop() {
				log.Info("conversation started", "conversation_id", "0123456789abcdef", "user", "ann", "took", time.Second, "n", 12)
			}
		})
	}
}
