package egress

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustHost(t testing.TB, text string) host {
	t.Helper()
	h, err := parseHost(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return h
}

func mustCompile(t testing.TB, p Policy) *rules {
	t.Helper()
	r, err := p.compile()
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	return r
}

func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern string
		yes, no string // hosts, with a port if it is not 443
	}{
		{"example.org", "example.org EXAMPLE.ORG. example.org:80", "www.example.org notexample.org example.org.evil.com example.org:8080 org"},
		{"Example.ORG.", "example.org", "www.example.org"},
		{"*.example.org", "www.example.org a.b.example.org", "example.org xexample.org example.org.example.com"},
		{".example.org", "example.org www.example.org a.b.example.org", "xexample.org"},
		{"example.org:8080", "example.org:8080", "example.org example.org:80 www.example.org:8080"},
		{"*.example.org:22", "git.example.org:22", "git.example.org example.org:22"},
		{"bücher.example", "xn--bcher-kva.example BÜCHER.example", "bucher.example"},
		{"xn--bcher-kva.example", "bücher.example", "xn--bcher.example"},
		{"*.例え.テスト", "www.xn--r8jz45g.xn--zckzah", "xn--r8jz45g.xn--zckzah"},
		{"under_score.example.org", "under_score.example.org", "underscore.example.org"},
		{"localhost", "localhost", "localhost.example.org 127.0.0.1"},
		{"93.184.216.34", "93.184.216.34 ::ffff:93.184.216.34", "93.184.216.35 34.216.184.93.example.org"},
		{"93.184.216.34:8080", "93.184.216.34:8080", "93.184.216.34"},
		{"93.184.216.0/24", "93.184.216.34 93.184.216.0 93.184.216.255:80", "93.184.217.1 93.184.216.34:8080"},
		{"93.184.216.0/24:8080", "93.184.216.34:8080", "93.184.216.34"},
		{"2606:2800::1", "2606:2800:0::1", "2606:2800::2"},
		{"[2606:2800::1]", "2606:2800::1", "2606:2800::2"},
		{"[2606:2800::1]:8080", "[2606:2800::1]:8080", "2606:2800::1"},
		{"2606:2800::/32", "2606:2800::1", "2606:2801::1"},
		{"[2606:2800::/32]:22", "[2606:2800::1]:22", "2606:2800::1"},
		{"0.0.0.0/0", "93.184.216.34", "example.org 2606:2800::1"},
	} {
		r := mustCompile(t, Policy{Allowlist, []string{test.pattern}})
		ask := func(text string, want bool) {
			name, port, err := cutPort(text)
			if err != nil {
				t.Fatal(err)
			}
			if port == 0 {
				port = 443
			}
			if got := r.refuses(mustHost(t, name), port) == ""; got != want {
				t.Errorf("%s allows %s: %v, want %v", test.pattern, text, got, want)
			}
		}
		for _, text := range strings.Fields(test.yes) {
			ask(text, true)
		}
		for _, text := range strings.Fields(test.no) {
			ask(text, false)
		}
	}
}

func TestBadPatterns(t *testing.T) {
	for text, want := range map[string]string{
		"": "empty", " ": "empty", "*": `mode "open"`, "https://example.org": "without the scheme", "example.org/path": "without a path",
		"*.*.example.org": "wildcard", "www.*.org": "wildcard", "*example.org": "wildcard", "*.": "neither", ".": "neither", "..": "neither",
		"example..org": "neither", "exa mple.org": "neither", "user@example.org": "neither", "example.org:0": "port", "example.org:": "port",
		"example.org:65536": "port", "example.org:+80": "port", "example.org:080": "port", "example.org:http": "port", "[example.org]:80": "brackets",
		"[::1": "brackets", "[::1]80": "brackets", "127.1": "in full", "0x7f.0.0.1": "in full", "2130706433": "in full", "0177.0.0.1": "in full",
		"*.192.0.2.1": "below", "10.0.0.1/8": "10.0.0.0/8", "10.0.0.0/33": "range", "::ffff:10.0.0.0/104": "IPv4", "fe80::1%eth0": "zone",
		strings.Repeat("a", 64) + ".org": "neither", strings.Repeat("a.", 127) + "org": "253", "example.org\x00": "neither", "a\xffb.org": "not a host",
		"example.org?x": "neither", "example.org#x": "neither", "ex%61mple.org": "neither",
	} {
		_, err := ParsePolicy("allowlist", []string{text})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one about %q", text, err, want)
		}
		if err := (Policy{Allowlist, []string{"example.org", text}}).Check(); err == nil {
			t.Errorf("%q passes Check", text)
		}
	}
	for _, mode := range []string{"", "Open", "closed", "allow"} {
		if _, err := ParsePolicy(mode, nil); err == nil {
			t.Errorf("mode %q is accepted", mode)
		}
	}
	if _, err := ParsePolicy("allowlist", make([]string, maxAllow+1)); err == nil {
		t.Error("an endless list is accepted")
	}
}

func TestParsePolicy(t *testing.T) {
	got, err := ParsePolicy("allowlist", []string{"Example.ORG.", "example.org", " .Bücher.example:8080 ", "[2001:DB8:0::1]:443", "10.0.0.0/8", "::ffff:192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	want := "example.org .xn--bcher-kva.example:8080 [2001:db8::1]:443 10.0.0.0/8 192.0.2.1"
	if strings.Join(got.Allow, " ") != want || got.Mode != Allowlist {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

func TestModes(t *testing.T) {
	h := mustHost(t, "example.org")
	for _, test := range []struct {
		policy Policy
		port   uint16
		want   string
	}{
		{Policy{Mode: Open}, 443, ""},
		{Policy{Mode: Open}, 9418, ""},
		{Policy{Mode: Open}, 25, "mail"},
		{Policy{Mode: Open, Allow: []string{"other.org"}}, 443, ""},
		{Policy{Mode: Off}, 443, "nothing"},
		{Policy{Mode: Off, Allow: []string{"example.org"}}, 443, "nothing"},
		{Policy{Mode: Allowlist}, 443, `"allowlist" does not allow example.org;`},
		{Policy{Mode: Allowlist, Allow: []string{"example.org"}}, 8080, `does not allow example.org:8080;`},
		{Policy{Mode: Allowlist, Allow: []string{"example.org:25"}}, 25, ""},
	} {
		got := mustCompile(t, test.policy).refuses(h, test.port)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%v, port %d: got %q, want %q", test.policy, test.port, got, test.want)
		}
	}
}

func TestStricter(t *testing.T) {
	list := func(allow ...string) Policy { return Policy{Allowlist, allow} }
	for _, test := range []struct{ a, b, want Policy }{
		{Policy{Mode: Open}, Policy{Mode: Open}, Policy{Mode: Open}},
		{Policy{Mode: Off}, Policy{Mode: Open}, Policy{Mode: Off}},
		{Policy{Mode: Off}, list("a.org"), Policy{Mode: Off}},
		{Policy{}, Policy{Mode: Open}, Policy{Mode: Off}},
		{Policy{Mode: "wrong"}, list("a.org"), Policy{Mode: Off}},
		{list("not a host"), list("a.org"), Policy{Mode: Off}},
		{Policy{Mode: Open}, list("a.org", "mail.org:25"), list("a.org")},
		{list("a.org", "b.org"), list("b.org", "c.org"), list("b.org")},
		{list("a.org"), list("b.org"), list()},
		{list(".a.org"), list("x.a.org", "a.org:80"), list("x.a.org", "a.org:80")},
		{list("*.a.org"), list("a.org", ".b.a.org"), list(".b.a.org")},
		{list(".a.org"), list("*.a.org"), list("*.a.org")},
		{list("a.org:8080"), list("a.org"), list()},
		{list("10.0.0.0/8"), list("10.1.0.0/16:443", "11.0.0.1", "10.2.3.4"), list("10.1.0.0/16:443", "10.2.3.4")},
		{list("::/0"), list("10.0.0.1", "2606::1"), list("2606::1")},
	} {
		for _, got := range []Policy{Stricter(test.a, test.b), Stricter(test.b, test.a)} {
			if got.Mode != test.want.Mode || !sameSet(got.Allow, test.want.Allow) {
				t.Errorf("%v and %v: got %v, want %v", test.a, test.b, got, test.want)
			}
		}
	}
}

func sameSet(a, b []string) bool {
	in := map[string]int{}
	for _, s := range a {
		in[s]++
	}
	for _, s := range b {
		in[s]--
	}
	for _, n := range in {
		if n != 0 {
			return false
		}
	}
	return true
}

// Whatever the policies, both together allow what each allows.
func TestStricterIsBoth(t *testing.T) {
	label := rapid.SampledFrom([]string{"a", "b", "xa"})
	names := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(label, 0, 2).Draw(t, "labels"), ".") + ".org"
	})
	clean := rapid.Map(names, func(s string) string { return strings.TrimPrefix(s, ".") })
	addrs := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.1.1", "2606::1", "2606::2"})
	ranges := rapid.SampledFrom([]string{"10.0.0.0/24", "10.0.0.0/16", "10.0.0.2/31", "2606::/32", "::/0", "0.0.0.0/0"})
	pattern := rapid.Custom(func(t *rapid.T) string {
		port := rapid.SampledFrom([]string{"", "", ":80", ":8080", ":25"}).Draw(t, "port")
		if rapid.Bool().Draw(t, "name") {
			return rapid.SampledFrom([]string{"", "*.", "."}).Draw(t, "wildcard") + clean.Draw(t, "host") + port
		}
		a := rapid.OneOf(addrs, ranges).Draw(t, "address")
		if strings.Contains(a, ":") {
			a = "[" + a + "]"
		}
		return a + port
	})
	policy := rapid.Custom(func(t *rapid.T) Policy {
		return Policy{
			Mode:  rapid.SampledFrom([]Mode{Open, Off, Allowlist, Allowlist, Allowlist}).Draw(t, "mode"),
			Allow: rapid.SliceOfN(pattern, 0, 6).Draw(t, "allow"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := policy.Draw(t, "a"), policy.Draw(t, "b")
		ra, errA := a.compile()
		rb, errB := b.compile()
		both := Stricter(a, b)
		rc, errC := both.compile()
		if errA != nil || errB != nil || errC != nil {
			t.Fatal(errA, errB, errC)
		}
		for range 10 {
			h, err := parseHost(rapid.OneOf(clean, addrs).Draw(t, "asked"))
			if err != nil {
				t.Fatal(err)
			}
			port := rapid.SampledFrom([]uint16{80, 443, 8080, 25, 22}).Draw(t, "port")
			want := ra.refuses(h, port) == "" && rb.refuses(h, port) == ""
			if got := rc.refuses(h, port) == ""; got != want {
				t.Fatalf("%v and %v make %v, which allows %s:%d: %v, want %v", a, b, both, h, port, got, want)
			}
		}
	})
}

// A pattern that is accepted has one spelling, and that means the same.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"example.org", "*.example.org:80", ".bücher.example", "[2001:db8::1]:443", "10.0.0.0/8", "127.1", "a。b", "ﬀ.org", "\u200d.x"} {
		f.Add(s, "www.example.org")
	}
	f.Fuzz(func(t *testing.T, text, asked string) {
		p, err := parsePattern(text)
		if err != nil {
			return
		}
		again, err := parsePattern(p.String())
		if err != nil || again != p {
			t.Fatalf("%q is spelled %q, which is read as %+v (%v), not %+v", text, p.String(), again, err, p)
		}
		h, err := parseHost(asked)
		if err != nil {
			return
		}
		back, err := parseHost(h.String())
		if err != nil || back != h {
			t.Fatalf("the host %q is spelled %q, which is read as %q (%v)", asked, h, back, err)
		}
		r, err := Policy{Allowlist, []string{text}}.compile()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.refuses(h, 443) == "", p.matches(h, 443); got != want {
			t.Fatalf("%q allows %q: %v by the index, %v by itself", text, h, got, want)
		}
		if p.kind != network && p.matches(h, 443) && !strings.HasSuffix("."+h.name, "."+p.name) {
			t.Fatalf("%q allows %q", text, h)
		}
	})
}
