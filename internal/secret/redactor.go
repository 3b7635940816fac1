package secret

import (
	"bytes"
	"container/list"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// maxRecent is the maximum number of values without an owner. The least recently
	// used are forgotten first.
	maxRecent = 1000
	// maxForm is the maximum length of an encoded form. Longer ones are matched by this
	// prefix and masked to the end of the text.
	maxForm = 256
)

// Redactor masks the secrets of all users in the server's logs, in every common encoding.
// For text that users see, use a Masker. Values with a Weakness are not masked. It is
// safe for concurrent use.
type Redactor struct {
	count atomic.Int64  // of values, to be quick when there are none
	gen   atomic.Uint64 // grows when values change

	mu     sync.RWMutex
	values map[string]*known
	recent *list.List // of *known, those that Add made known; front: used last
	forms  matcher
}

type known struct {
	value  string
	forms  []string
	owners int           // how many have it
	recent *list.Element // nil if Add did not make it known, or long ago
}

// NewRedactor returns a Redactor without secrets.
func NewRedactor() *Redactor {
	return &Redactor{values: map[string]*known{}, recent: list.New(), forms: newMatcher()}
}

// Add adds values temporarily: until 1,000 others were added.
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		k := r.know(v)
		if k == nil {
			continue
		}
		if k.recent != nil {
			r.recent.MoveToFront(k.recent)
			continue
		}
		k.recent = r.recent.PushFront(k)
		if r.recent.Len() > maxRecent {
			old := r.recent.Remove(r.recent.Back()).(*known)
			old.recent = nil
			r.forget(old)
		}
	}
	r.count.Store(int64(len(r.values)))
}

// Keep adds values permanently: those of the server itself.
func (r *Redactor) Keep(values ...string) { r.keep(values) }

// keep adds the values of an owner until drop.
func (r *Redactor) keep(values []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		if k := r.know(v); k != nil {
			k.owners++
		}
	}
	r.count.Store(int64(len(r.values)))
}

// drop reverts a keep of the same values.
func (r *Redactor) drop(values []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		if k := r.values[v]; k != nil {
			k.owners--
			r.forget(k)
		}
	}
	r.count.Store(int64(len(r.values)))
}

// know returns the entry of a value, or nil if it is not masked.
func (r *Redactor) know(v string) *known {
	if k := r.values[v]; k != nil {
		return k
	}
	if Weakness(v) != "" {
		return nil
	}
	k := &known{value: v}
	for _, f := range writtenForms(v) {
		f = f[:min(len(f), maxForm)]
		k.forms = append(k.forms, f)
		r.forms.add(f)
	}
	r.values[v] = k
	r.gen.Add(1)
	return k
}

// forget removes a value that is not used any more.
func (r *Redactor) forget(k *known) {
	if k.owners > 0 || k.recent != nil {
		return
	}
	delete(r.values, k.value)
	for _, f := range k.forms {
		r.forms.remove(f)
	}
	r.gen.Add(1)
}

// String returns s with all known secrets masked. Overlapping secrets are masked as one,
// so that no part of the second remains.
func (r *Redactor) String(s string) string {
	if r.count.Load() == 0 || len(s) < MinMasked {
		return s
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []byte
	copied, end := 0, 0 // what is in out, and where the secret ends that at is in
	for at := 0; at+headLen <= len(s); at++ {
		n := r.forms.match(s[at:])
		if n == 0 {
			continue
		}
		if at >= end {
			out = append(append(out, s[copied:at]...), Mask...)
		}
		end = max(end, at+n)
		copied = end
		if n == maxForm {
			return string(out)
		}
	}
	if out == nil {
		return s
	}
	return string(append(out, s[copied:]...))
}

// writtenForms returns the encodings in which v may appear in text, v itself first.
func writtenForms(v string) []string {
	seen := map[string]bool{}
	var out []string
	add := func(forms ...string) {
		for _, f := range forms {
			if len(f) >= MinMasked && !seen[f] {
				seen[f] = true
				out = append(out, f)
			}
		}
	}
	add(v, url.QueryEscape(v), url.PathEscape(v))
	add(jsonEscaped(v, true), jsonEscaped(v, false))
	add(hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		add(enc.EncodeToString([]byte(v)), enc.WithPadding(base64.NoPadding).EncodeToString([]byte(v)))
		for shift := range 3 {
			add(inner64(enc, v, shift))
		}
	}
	// Programs print the lines of a key file with other line ends, or one by one. Its
	// first and last line are not secret.
	if strings.ContainsAny(v, "\r\n") {
		for line := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '\r' || r == '\n' }) {
			if line = strings.TrimSpace(line); len(line) >= 16 && !strings.HasPrefix(line, "-----") {
				add(line)
			}
		}
	}
	return out
}

// inner64 returns the part of base64 text that depends only on v when shift bytes (modulo
// 3) precede it in the encoded text, as in the "user:token" of basic authentication.
func inner64(enc *base64.Encoding, v string, shift int) string {
	text := enc.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, shift), v...))
	first, end := (shift*8+5)/6, (shift+len(v))*8/6
	return text[first:end]
}

func jsonEscaped(v string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(v) != nil {
		return v
	}
	s := strings.TrimSuffix(b.String(), "\n")
	return s[1 : len(s)-1]
}
