package secret

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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

// throughWriter masks a text in pieces. What was written and what is held are always
// the text so far.
func throughWriter(t *testing.T, r *Masker, pieces []string) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	soFar, got := "", ""
	for _, p := range pieces {
		if n, err := w.Write([]byte(p)); err != nil || n != len(p) {
			t.Fatalf("Write = %d, %v", n, err)
		}
		soFar += p
		got = out.String() + w.Held()
		want := r.String(soFar)
		cut, masked := strings.CutSuffix(got, Mask) // of what may be a secret
		if got != want && !(masked && strings.HasPrefix(want, cut)) {
			t.Fatalf("written and held %q, string %q", got, want)
		}
	}
	return got
}

func TestWriterEveryCut(t *testing.T) {
	r := NewMasker("abcdXfgh", "XfghiYkl", "abcdXfghi-long", canary)
	text := "x abcdXfgh abcdXfghiYkl abcdXfghi-lon abcdXfghi-long " + canary + canary + base64.StdEncoding.EncodeToString([]byte("u:"+canary)) + " abcdXfg"
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
	r := NewMasker(canary)
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
	for _, tt := range []struct{ in, held string }{
		{canary[:3], canary[:3]},
		{canary[3 : MinMasked-1], canary[:MinMasked-1]},
		{canary[MinMasked-1 : len(canary)-1], Mask}, // most of the secret
		{"!", ""},
	} {
		if _, err := w.Write([]byte(tt.in)); err != nil || w.Held() != tt.held || w.Held() != tt.held {
			t.Errorf("after %q: %q is held, want %q", tt.in, w.Held(), tt.held)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestWriterPassesErrorsOn(t *testing.T) {
	w := NewMasker().Writer(brokenWriter{})
	if _, err := w.Write([]byte("text")); err == nil {
		t.Error("Write hides the error")
	}
	if _, err := w.Write([]byte("text")); err == nil {
		t.Error("the second Write hides the error")
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("abcdXfef", "fefabc-long", "x abcdXfefabc-longabcdXf", []byte{1, 2, 3})
	f.Add("abcdabcd", "abcdabcdabcd", "abcdabcdabcdabcdabcdabcdabcx", []byte{5})
	f.Add("abcabcabc", "cabcab", "abcabcabcabcabcabcab", []byte{0, 4})
	f.Fuzz(func(t *testing.T, v1, v2, text string, cuts []byte) {
		r := NewMasker(v1, v2)
		text += v1 + v2 + text
		throughWriter(t, r, chunks(text, cuts))
		want := r.String(text)
		for _, v := range []string{v1, v2} {
			if Weakness(v) == "" && strings.Contains(want, v) && !strings.Contains(Mask+Mask, v) && !strings.Contains(v, "*") {
				t.Errorf("%q still shows %q", want, v)
			}
		}
	})
}

// Each owner's values are masked for that owner alone, and forgotten with them.
func TestMaskersKeepOwnersApart(t *testing.T) {
	t.Parallel()
	logs := NewRedactor()
	all := NewMaskers(logs)
	ada, _ := all.Of("ada")
	bob, fresh := all.Of("bob")
	if fresh {
		t.Error("nothing was ever set")
	}
	const one, two, both = "ada-hidden-1", "ada-hidden-2", "both-hidden-3"
	text := one + " " + two + " " + both
	is := func(when, wantAda, wantBob, wantLogs string) {
		t.Helper()
		for who, got := range map[string][2]string{"ada": {ada.String(text), wantAda}, "bob": {bob.String(text), wantBob}, "logs": {logs.String(text), wantLogs}} {
			if got[0] != got[1] {
				t.Errorf("%s, %s sees %q, want %q", when, who, got[0], got[1])
			}
		}
	}
	is("at first", text, text, text)
	all.Set("ada", 1, []string{one, two, both})
	all.Set("bob", 1, []string{both})
	is("stored", Mask+" "+Mask+" "+Mask, one+" "+two+" "+Mask, Mask+" "+Mask+" "+Mask)
	all.Hold("ada", "box", one)
	all.Set("ada", 3, []string{two})
	all.Set("ada", 2, []string{one, two, both}) // read before, and too late
	is("removed but in use", Mask+" "+Mask+" "+both, one+" "+two+" "+Mask, Mask+" "+Mask+" "+Mask)
	all.Release("another box")
	all.Release("box")
	all.Set("bob", 2, nil)
	is("not in use", one+" "+Mask+" "+both, text, one+" "+Mask+" "+both)
	all.Expire("ada")
	if _, fresh := all.Of("ada"); fresh {
		t.Error("what has expired is fresh")
	}
	all.Set("ada", 1, []string{one}) // the settings were removed and made again
	is("made again", Mask+" "+two+" "+both, text, Mask+" "+two+" "+both)
}

// What is held is bounded, and what is built is built again when it is needed.
func TestMaskersAreBounded(t *testing.T) {
	t.Parallel()
	all := NewMaskers(NewRedactor())
	all.limit = 1 // one at a time
	var maskers []*Masker
	for i := range 5 {
		owner := fmt.Sprint("owner-", i)
		m, _ := all.Of(owner)
		all.Set(owner, 1, []string{"hidden-value-of-" + owner})
		maskers = append(maskers, m)
	}
	for range 2 {
		built := 0
		for i, m := range maskers {
			if got := m.String(fmt.Sprint("<hidden-value-of-owner-", i, ">")); got != "<"+Mask+">" {
				t.Errorf("owner %d: %q", i, got)
			}
		}
		for _, m := range maskers {
			if m.built.Load() != nil {
				built++
			}
		}
		if built != 1 {
			t.Errorf("%d are built", built)
		}
	}
	large := strings.Repeat("0123456789abcde-", 1<<10)
	for i := range 20 {
		all.Hold("owner-0", "box", fmt.Sprint(i, large))
	}
	all.mu.Lock()
	n := len(all.owners["owner-0"].held)
	all.mu.Unlock()
	if n < 5 || n*len(large) > maxHeld || maskers[0].String(fmt.Sprint(19, large)) != Mask {
		t.Errorf("%d large values are held", n)
	}
}

// Whatever the values and the text are, masking takes time in proportion to the text.
func TestMaskingIsLinear(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("abcd", 10<<10)
	m := NewMasker(value, value[1:], value+"X", "bcda"+value[:1000])
	m.String("") // built once
	begun := time.Now()
	text := strings.Repeat("abcd", 1<<20)[1:] + "Y" // 4 MiB
	if got := m.String(text); strings.Contains(got, value) {
		t.Error("it is not masked")
	}
	w := m.Writer(&bytes.Buffer{})
	for part := range slices.Chunk([]byte(text), 4<<10) {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.held) > 100<<10 {
		t.Errorf("%d bytes are held back", len(w.held))
	}
	// Quadratic work on this takes hours; this only tells the two apart.
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}
}

// A writer notices secrets that become known while it is in use.
func TestWriterLearns(t *testing.T) {
	t.Parallel()
	m := NewMasker("first-hidden")
	var out bytes.Buffer
	w := m.Writer(&out)
	for _, step := range []func(){
		func() { _, _ = w.Write([]byte("second-hidden first-hid")) },
		func() { m.Add("second-hidden") },
		func() { _, _ = w.Write([]byte("den second-hid")) },
		func() { m.Add("third-hidden") },
		func() { _, _ = w.Write([]byte("den third-hidden.")) },
	} {
		step()
	}
	if out.String() != "second-hidden "+Mask+" "+Mask+" "+Mask+"." {
		t.Errorf("%q", out.String())
	}
}

func BenchmarkMasker(b *testing.B) {
	var values []string
	for i := range 20 {
		values = append(values, fmt.Sprintf("ghp_%036x", i*7919))
	}
	m := NewMasker(values...)
	text := strings.Repeat("The quick brown fox jumps over the lazy dog; exit code 0, 123 files changed.\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_ = m.String(text)
	}
}

// BenchmarkOwners masks what 50 turns at once print, 8 KB each, where 1,000 users have 20 secrets
// each: with no secrets at all, with those of each user for the user's own texts, and with
// those of all users for all texts.
func BenchmarkOwners(b *testing.B) {
	const users, secrets, turns = 1000, 20, 50
	all := NewMaskers(NewRedactor())
	var plain []string
	for u := range users {
		var own []string
		for i := range secrets {
			own = append(own, fmt.Sprintf("ghp_%036x", (u*secrets+i)*7919))
		}
		all.Set(fmt.Sprint(u), 1, own)
		plain = append(plain, own...)
	}
	one := NewMasker(plain...)
	text := strings.Repeat("ok  \tgithub.com/octo/app/internal/store\t0.412s\t(cached) 123 files changed, exit code 0\n", 100)
	for _, c := range []struct {
		name string
		of   func(turn int) *Masker
	}{
		{"none", func(int) *Masker { return nil }},
		{"own, 50 users at work", func(turn int) *Masker { m, _ := all.Of(fmt.Sprint(turn % turns)); return m }},
		{"own, 1000 users at work", func(turn int) *Masker { m, _ := all.Of(fmt.Sprint(turn % users)); return m }},
		{"all users", func(int) *Masker { return one }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for u := range users { // built before it is measured
				_ = c.of(u).String(text)
			}
			b.SetBytes(int64(len(text)))
			b.ResetTimer()
			b.SetParallelism(max(turns/runtime.GOMAXPROCS(0), 1))
			var next atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_ = c.of(int(next.Add(1))).String(text)
				}
			})
		})
	}
}
