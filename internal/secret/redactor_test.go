package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func TestRedactorForms(t *testing.T) {
	awkward := "p@ss \"word\"/<&>+é\\" + canary
	for _, v := range []string{canary, "abcdefg9", "abcdefgh9", "abcdefghi9", awkward} {
		r := NewMasker(v)
		logs := NewRedactor()
		logs.Add(v)
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
			if other := logs.String(text); other != got {
				t.Errorf("%q is %q in logs", got, other)
			}
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
		{"short values stay", []string{"1", "true", "1234567"}, "1 true 1234567", "1 true 1234567"},
		{"common words stay", []string{"function", "/workspace", "execute_bash"}, "function /workspace execute_bash", "function /workspace execute_bash"},
		{"shortest value", []string{"1234567x"}, "a1234567xb", "a" + Mask + "b"},
		{"longest first", []string{"secret-1", "secret-1-long"}, "secret-1-long secret-1", Mask + " " + Mask},
		{"overlap", []string{"abcdXfgh", "XfghiYkl"}, "-abcdXfghiYkl-", "-" + Mask + "-"},
		{"one in the other", []string{"abcdXfghi", "bcdXfghi"}, "-abcdXfghi-bcdXfghi", "-" + Mask + "-" + Mask},
		{"neighbours", []string{"abcdXf12", "ghiYkl34"}, "abcdXf12ghiYkl34", Mask + Mask},
		{"the mask is not a value", []string{Mask}, Mask, Mask},
		{"almost", []string{"abcdXfgh"}, "abcdXfg abcdXfgx", "abcdXfg abcdXfgx"},
		{"a false beginning", []string{"abcabcabX", "bcabcabY"}, "abcabcabcabX abcabcabY", "abc" + Mask + " a" + Mask},
		{"lines of a key", []string{"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhk\nZZZZQIBADANBgkqhkY\n-----END KEY-----\n"}, "-----BEGIN KEY-----\r\nMIIEvQIBADANBgkqhk\r\n-----END KEY-----", "-----BEGIN KEY-----\r\n" + Mask + "\r\n-----END KEY-----"},
	}
	for _, tt := range tests {
		r := NewRedactor()
		r.Add(tt.values...)
		if got := r.String(tt.in); got != tt.want {
			t.Errorf("%s in logs: %q, want %q", tt.name, got, tt.want)
		}
		if got := NewMasker(tt.values...).String(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Values without an owner are forgotten after a while, those of owners never before
// their owners have others.
func TestRedactorIsBounded(t *testing.T) {
	r := NewRedactor()
	mine, other := "owned-"+canary, "other-"+canary
	r.keep([]string{mine, other})
	r.keep([]string{mine})
	r.Add(canary)
	for i := range maxRecent {
		r.Add(fmt.Sprintf("sk-proj-%08d", i))
		if i%100 == 0 {
			r.Add(canary) // still in use
		}
	}
	if n := r.recent.Len(); n != maxRecent || len(r.values) != n+2 {
		t.Errorf("%d values kept", n)
	}
	for text, want := range map[string]bool{canary: true, "sk-proj-00000999": true, "sk-proj-00000000": false, mine: true, other: true} {
		if got := r.String(text) != text; got != want {
			t.Errorf("%s masked: %v", text, got)
		}
	}
	r.drop([]string{mine, other})
	if r.String(mine) != Mask || !strings.HasPrefix(r.String(other), "other-") { // what follows is the canary
		t.Error("what one owner drops is forgotten for another, or an unowned value is not")
	}
	r.drop([]string{mine})
	for r.recent.Len() > 0 {
		k := r.recent.Remove(r.recent.Back()).(*known)
		k.recent = nil
		r.forget(k)
	}
	if len(r.forms.refs)+len(r.forms.heads)+len(r.values) != 0 {
		t.Error("forgetting leaves something behind")
	}
	long := strings.Repeat("0123456789abcdef-", 100)
	r.Add(long)
	if got := r.String("see " + long + " there"); got != "see "+Mask {
		t.Errorf("a long value: %q", got)
	}
}

func TestRedactorConcurrently(t *testing.T) {
	r := NewRedactor()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 100 {
				v := fmt.Sprintf("hidden-%d-%d", i, j)
				r.Add(v)
				if got := r.String("<" + v + ">"); got != "<"+Mask+">" {
					t.Errorf("%q", got)
				}
			}
		})
	}
	wg.Wait()
}
