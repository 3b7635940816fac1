package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
)

// Handler returns a slog.Handler in front of next that masks known secrets in the message
// and in every attribute. It also masks all values with a name such as api_key, token,
// authorization, password, secret or cookie.
func (r *Redactor) Handler(next slog.Handler) slog.Handler {
	h := &handler{r: r, base: next}
	h.built.Store(&built{gen: r.gen.Load(), next: next})
	return h
}

type handler struct {
	r     *Redactor
	base  slog.Handler
	with  []withOp
	built atomic.Pointer[built]
}

// withOp is one WithGroup (attrs nil) or WithAttrs.
type withOp struct {
	group string
	attrs []slog.Attr
}

// built is base with all withOps applied, redacted with the values known at gen.
type built struct {
	gen  uint64
	next slog.Handler
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.base.Enabled(ctx, level)
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.extend(withOp{group: name})
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	return h.extend(withOp{attrs: attrs})
}

func (h *handler) extend(op withOp) slog.Handler {
	out := &handler{r: h.r, base: h.base, with: append(slices.Clone(h.with), op)}
	out.rebuild()
	return out
}

// next returns the wrapped handler. A value may have been added to a logger before it was
// known to be a secret, so attributes are redacted again when new secrets become known.
func (h *handler) next() slog.Handler {
	if b := h.built.Load(); len(h.with) == 0 || b.gen == h.r.gen.Load() {
		return b.next
	}
	return h.rebuild()
}

func (h *handler) rebuild() slog.Handler {
	b := &built{gen: h.r.gen.Load(), next: h.base}
	for _, op := range h.with {
		if op.attrs == nil {
			b.next = b.next.WithGroup(op.group)
			continue
		}
		attrs, _ := h.r.attrs(op.attrs)
		b.next = b.next.WithAttrs(attrs)
	}
	h.built.Store(b)
	return b.next
}

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	msg := h.r.String(rec.Message)
	changed := len(msg) != len(rec.Message) || msg != rec.Message
	if !changed {
		rec.Attrs(func(a slog.Attr) bool {
			_, changed = h.r.attr(a)
			return !changed
		})
	}
	if !changed {
		return h.next().Handle(ctx, rec)
	}
	clean := slog.NewRecord(rec.Time, rec.Level, msg, rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		a, _ = h.r.attr(a)
		clean.AddAttrs(a)
		return true
	})
	return h.next().Handle(ctx, clean)
}

// attrs returns in itself when there is nothing to mask.
func (r *Redactor) attrs(in []slog.Attr) (out []slog.Attr, changed bool) {
	out = in
	for i, a := range in {
		b, diff := r.attr(a)
		if !diff {
			continue
		}
		if !changed {
			out, changed = slices.Clone(in), true
		}
		out[i] = b
	}
	return out, changed
}

func (r *Redactor) attr(a slog.Attr) (slog.Attr, bool) {
	if secretName(a.Key) {
		switch a.Value.Kind() {
		case slog.KindBool, slog.KindDuration, slog.KindTime:
			// They say something about the secret, not what it is.
		default:
			return slog.String(a.Key, Mask), true
		}
	}
	v, changed := r.value(a.Value)
	key := r.String(a.Key)
	return slog.Attr{Key: key, Value: v}, changed || key != a.Key
}

func (r *Redactor) value(v slog.Value) (slog.Value, bool) {
	switch v.Kind() {
	case slog.KindString:
		s := v.String()
		clean := r.String(s)
		return slog.StringValue(clean), clean != s
	case slog.KindGroup:
		attrs, changed := r.attrs(v.Group())
		return slog.GroupValue(attrs...), changed
	case slog.KindLogValuer:
		// Resolve may return another value on each call, so only the checked value is
		// passed on.
		resolved, _ := r.value(v.Resolve())
		return resolved, true
	case slog.KindAny:
		return r.any(v)
	case slog.KindBool, slog.KindDuration, slog.KindTime:
		return v, false
	default: // numbers: a PIN is a secret too
		if r.count.Load() == 0 {
			return v, false
		}
		s := v.String()
		clean := r.String(s)
		if clean == s {
			return v, false
		}
		return slog.StringValue(clean), true
	}
}

// any checks all ways in which a handler may format the value. If one of them shows a
// secret, the value is replaced by masked text.
func (r *Redactor) any(v slog.Value) (_ slog.Value, changed bool) {
	x := v.Any()
	if hasSecretName(x) {
		return slog.StringValue(Mask), true
	}
	if x == nil || r.count.Load() == 0 {
		return v, false
	}
	defer func() {
		if recover() != nil { // such as a method on a nil pointer
			changed = false
		}
	}()
	var text string
	switch x := x.(type) {
	case error:
		text = x.Error()
	case []byte:
		text = string(x)
	case fmt.Stringer:
		text = x.String()
	default:
		text = fmt.Sprintf("%+v", x)
	}
	if clean := r.String(text); clean != text {
		return slog.StringValue(clean), true
	}
	// JSON handlers write errors by their text, other values as JSON.
	if _, isErr := x.(error); isErr {
		return v, false
	}
	if b, err := json.Marshal(x); err == nil {
		if clean := r.String(string(b)); clean != string(b) {
			return slog.StringValue(clean), true
		}
	}
	// Text handlers write other values with all their fields.
	if full := fmt.Sprintf("%+v", x); full != text {
		if clean := r.String(full); clean != full {
			return slog.StringValue(clean), true
		}
	}
	return v, false
}

// hasSecretName reports whether a map, such as request headers, has an entry with the name of a secret.
func hasSecretName(x any) bool {
	m := reflect.ValueOf(x)
	if m.Kind() != reflect.Map || m.Type().Key().Kind() != reflect.String {
		return false
	}
	return slices.ContainsFunc(m.MapKeys(), func(k reflect.Value) bool { return secretName(k.String()) })
}

var secretEndings = []string{
	"apikey", "token", "secret", "password", "passwd", "passphrase",
	"authorization", "cookie", "privatekey", "masterkey", "credential", "credentials",
}

// secretName reports names like api_key, X-Session-API-Key, accessToken or Set-Cookie,
// but not prompt_tokens or llm_api_key_set.
func secretName(name string) bool {
	if len(name) > 64 {
		name = name[len(name)-64:]
	}
	var buf [64]byte
	plain := buf[:0]
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			plain = append(plain, c+'a'-'A')
		case c == '_' || c == '-' || c == '.' || c == ' ':
		default:
			plain = append(plain, c)
		}
	}
	for _, end := range secretEndings {
		if len(plain) >= len(end) && string(plain[len(plain)-len(end):]) == end {
			return true
		}
	}
	return false
}

var _ slog.Handler = (*handler)(nil)
