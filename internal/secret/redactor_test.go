package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func TestRedactorForms(t *testing.T) {
	awkward := "p@ss \"word\"/<&>+é\\" + canary
	for _, v := range []string{canary, "abcdef", "abcdefg", "abcdefgh", awkward} {
		r := NewRedactor()
		r.Add(v)
		marshal := func(x any) string { b, _ := json.Marshal(x); return string(b) }
		texts := []string{
			v, "x" + v + "y", v + v,
			"Bearer " + v, marshal(v), marshal(map[string]string{"k": v}),
			"https://h/?k=" + url.QueryEscape(v) + "&x=1", "https://h/" + url.PathEscape(v) + "/x",
			base64.StdEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)),
			hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))),
		}
		for _, before := range []string{"", "a", "ab", "abc", "user:"} {
			for _, after := range []string{"", "z", "zz", "zzz"} {
				texts = append(texts,
					base64.StdEncoding.EncodeToString([]byte(before+v+after)),
					base64.URLEncoding.EncodeToString([]byte(before+v+after)))
			}
		}
		for _, text := range texts {
			got := r.String(text)
			if !strings.Contains(got, Mask) {
				t.Errorf("%q is not masked: %q", text, got)
			}
			for _, form := range writtenForms(v) {
				if strings.Contains(got, form) {
					t.Errorf("%q still shows %q", got, form)
				}
			}
		}
	}
}

func TestRedactorText(t *testing.T) {
	tests := []struct {
		name   string
		values []string
		in     string
		want   string
	}{
		{"nothing known", nil, "hello world", "hello world"},
		{"short values stay", []string{"1", "true", "12345"}, "1 true 12345", "1 true 12345"},
		{"shortest value", []string{"123456"}, "a123456b", "a" + Mask + "b"},
		{"longest first", []string{"secret-1", "secret-1-long"}, "secret-1-long secret-1", Mask + " " + Mask},
		{"overlap", []string{"abcdefgh", "efghijkl"}, "-abcdefghijkl-", "-" + Mask + "-"},
		{"one in the other", []string{"abcdefgh", "cdefgh"}, "-abcdefgh-cdefgh", "-" + Mask + "-" + Mask},
		{"neighbours", []string{"abcdef", "ghijkl"}, "abcdefghijkl", Mask + Mask},
		{"the mask is not a value", []string{Mask}, Mask, Mask},
		{"almost", []string{"abcdefgh"}, "abcdefg abcdefgx", "abcdefg abcdefgx"},
		{"lines of a key", []string{"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhk\nZZZZQIBADANBgkqhkY\n-----END KEY-----\n"}, "-----BEGIN KEY-----\r\nMIIEvQIBADANBgkqhk\r\n-----END KEY-----", "-----BEGIN KEY-----\r\n" + Mask + "\r\n-----END KEY-----"},
	}
	for _, tt := range tests {
		r := NewRedactor()
		r.Add(tt.values...)
		if got := r.String(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestRedactorIsBounded(t *testing.T) {
	r := NewRedactor()
	r.Add(canary)
	for i := range maxValues {
		r.Add(fmt.Sprintf("sk-proj-%08d", i))
		if i%100 == 0 {
			r.Add(canary) // still in use
		}
	}
	if n := r.recent.Len(); n != maxValues || len(r.values) != n {
		t.Errorf("%d values kept", n)
	}
	if r.String(canary) != Mask || r.String("sk-proj-00009999") != Mask || r.String("sk-proj-00000000") == Mask {
		t.Error("not the value used longest ago was forgotten")
	}
	for r.recent.Len() > 0 {
		r.forget(r.recent.Back())
	}
	if len(r.forms.refs)+len(r.forms.heads)+len(r.forms.starts)+r.bytes != 0 {
		t.Error("forgetting leaves something behind")
	}
	r.limit = 1000
	big := strings.Repeat("0123456789", 10)
	r.Add(big+"a", big+"b")
	if r.recent.Len() != 1 {
		t.Errorf("%d huge values kept", r.recent.Len())
	}
}

func TestRedactorConcurrently(t *testing.T) {
	r := NewRedactor()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 100 {
				v := fmt.Sprintf("value-%d-%d", i, j)
				r.Add(v)
				if got := r.String("<" + v + ">"); got != "<"+Mask+">" {
					t.Errorf("%q", got)
				}
			}
		})
	}
	wg.Wait()
}

// chunks cuts s into pieces whose lengths are given by cuts, again and again.
func chunks(s string, cuts []byte) []string {
	var out []string
	for i := 0; len(s) > 0; i++ {
		n := len(s)
		if len(cuts) > 0 {
			n = min(n, int(cuts[i%len(cuts)]%16))
			if n == 0 && i%len(cuts) == 0 {
				n = 1
			}
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func throughWriter(t *testing.T, r *Redactor, pieces []string) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, p := range pieces {
		if n, err := w.Write([]byte(p)); err != nil || n != len(p) {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWriterEveryCut(t *testing.T) {
	r := NewRedactor()
	r.Add("abcdefgh", "efghijkl", "abcdefghi-long", canary)
	text := "x abcdefgh abcdefghijkl abcdefghi-lon abcdefghi-long " + canary + canary + base64.StdEncoding.EncodeToString([]byte("u:"+canary)) + " abcdefg"
	want := r.String(text)
	for i := range text {
		for j := i; j <= len(text); j += 7 {
			if got := throughWriter(t, r, []string{text[:i], text[i:j], text[j:]}); got != want {
				t.Fatalf("cut at %d and %d: %q, want %q", i, j, got, want)
			}
		}
	}
}

func TestWriterHoldsBackOnlyDoubt(t *testing.T) {
	r := NewRedactor()
	r.Add(canary)
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, tt := range []struct{ in, want string }{
		{"plain text", "plain text"},
		{" " + canary[:10], "plain text "},
		{"!", "plain text " + canary[:10] + "!"},
	} {
		if _, err := w.Write([]byte(tt.in)); err != nil || out.String() != tt.want {
			t.Errorf("after %q: %q, want %q", tt.in, out.String(), tt.want)
		}
	}
	_, _ = w.Write([]byte(canary[:3]))
	if err := w.Flush(); err != nil || !strings.HasSuffix(out.String(), "!"+canary[:3]) {
		t.Errorf("%q, %v", out.String(), err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestWriterPassesErrorsOn(t *testing.T) {
	w := NewRedactor().Writer(brokenWriter{})
	if _, err := w.Write([]byte("text")); err == nil {
		t.Error("Write hides the error")
	}
	if w.Flush() == nil {
		t.Error("Flush hides the error")
	}
	if _, err := w.Write([]byte("text")); err == nil {
		t.Error("the second Write hides the error")
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("abcdef", "defabc-long", "x abcdefabc-longabcde", []byte{1, 2, 3})
	f.Add("aaaaaa", "aaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaab", []byte{5})
	f.Add("abcabcabc", "cabcab", "abcabcabcabcabcabcab", []byte{0, 4})
	f.Fuzz(func(t *testing.T, v1, v2, text string, cuts []byte) {
		r := NewRedactor()
		r.Add(v1, v2)
		text += v1 + v2 + text
		want := r.String(text)
		if got := throughWriter(t, r, chunks(text, cuts)); got != want {
			t.Errorf("writer %q, string %q", got, want)
		}
		for _, v := range []string{v1, v2} {
			if len(v) >= MinRedacted && v != Mask && strings.Contains(want, v) && !strings.Contains(Mask+Mask, v) && !strings.Contains(v, "*") {
				t.Errorf("%q still shows %q", want, v)
			}
		}
	})
}
