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
	// MinRedacted is the length below which a value is not redacted: masking every
	// "1" or "true" would destroy text that has nothing to do with the secret.
	MinRedacted = 6

	maxValues     = 10_000   // the values used longest ago are forgotten first
	maxFormsBytes = 64 << 20 // of all written forms together
)

// Redactor replaces known secrets in text by the mask, in whatever way they are
// written: raw, base64 (also inside a longer encoded text), hex, URL- or
// JSON-escaped. It may be used by many goroutines.
type Redactor struct {
	count atomic.Int64  // of values, to be quick when there are none
	gen   atomic.Uint64 // grows when a value is added

	mu     sync.RWMutex
	values map[string]*list.Element // of *known
	recent *list.List               // front: used last
	bytes  int
	limit  int // of bytes
	forms  matcher
}

type known struct {
	value string
	forms []string
	bytes int
}

// NewRedactor returns a Redactor that knows no secret yet.
func NewRedactor() *Redactor {
	return &Redactor{values: map[string]*list.Element{}, recent: list.New(), limit: maxFormsBytes, forms: newMatcher()}
}

// Add makes values known. Those shorter than MinRedacted are ignored. At most 10,000
// are kept; adding one again keeps it among them.
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		if len(v) < MinRedacted || v == Mask {
			continue
		}
		if e, ok := r.values[v]; ok {
			r.recent.MoveToFront(e)
			continue
		}
		k := &known{value: v, forms: writtenForms(v)}
		for _, f := range k.forms {
			k.bytes += len(f)
			r.forms.add(f)
		}
		r.bytes += k.bytes
		r.values[v] = r.recent.PushFront(k)
		r.gen.Add(1)
		for r.recent.Len() > maxValues || r.bytes > r.limit && r.recent.Len() > 1 {
			r.forget(r.recent.Back())
		}
	}
	r.count.Store(int64(r.recent.Len()))
}

func (r *Redactor) forget(e *list.Element) {
	k := r.recent.Remove(e).(*known)
	delete(r.values, k.value)
	r.bytes -= k.bytes
	for _, f := range k.forms {
		r.forms.remove(f)
	}
}

// String returns s with all known secrets masked. Secrets that overlap are masked
// as one, so that no end of the second stays.
func (r *Redactor) String(s string) string {
	if r.count.Load() == 0 || len(s) < MinRedacted {
		return s
	}
	var p pass
	r.mu.RLock()
	defer r.mu.RUnlock()
	p.run(&r.forms, s, true)
	if !p.masked {
		return s
	}
	return string(p.out)
}

// pass is one walk over a text, which may arrive in pieces.
type pass struct {
	out     []byte
	at      int  // everything before is decided
	copied  int  // everything before is in out
	maskEnd int  // end of the secret that at is in, if greater than at
	masked  bool // whether anything was masked
}

// run decides as much of s as is certain; final says that nothing follows.
func (p *pass) run(m *matcher, s string, final bool) {
	for ; p.at < len(s); p.at++ {
		if p.at == p.maskEnd {
			p.closeMask()
		}
		n, wait := m.match(s[p.at:], final)
		if wait {
			break
		}
		if n == 0 {
			continue
		}
		if p.at >= p.maskEnd {
			p.out = append(p.out, s[p.copied:p.at]...)
			p.copied, p.masked = p.at, true
		}
		p.maskEnd = max(p.maskEnd, p.at+n)
	}
	if p.at >= p.maskEnd {
		p.closeMask()
		if p.masked || !final {
			p.out = append(p.out, s[p.copied:p.at]...)
		}
		p.copied = p.at
	}
}

// closeMask writes the mask for the secret that ends here, if one does.
func (p *pass) closeMask() {
	if p.maskEnd > p.copied {
		p.out = append(p.out, Mask...)
		p.copied = p.maskEnd
	}
}

// writtenForms lists the ways in which v may appear in text, v itself first.
func writtenForms(v string) []string {
	seen := map[string]bool{}
	var out []string
	add := func(forms ...string) {
		for _, f := range forms {
			if len(f) >= MinRedacted && !seen[f] {
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
	// Programs print the lines of a key file with other line ends, or one by one.
	// The lines that begin and end it are not secret.
	if strings.ContainsAny(v, "\r\n") {
		for line := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '\r' || r == '\n' }) {
			if line = strings.TrimSpace(line); len(line) >= 16 && !strings.HasPrefix(line, "-----") {
				add(line)
			}
		}
	}
	return out
}

// inner64 is the part of base64 text that depends on v alone when shift bytes (modulo
// 3) stand before it in the encoded text, as in the "user:token" of basic authentication.
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
