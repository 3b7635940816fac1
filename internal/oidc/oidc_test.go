package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
)

func TestSignOn(t *testing.T) {
	l := newLiar(t)
	s := l.signOn()
	flow, answer, sent := l.begin(s)
	if sent.Get("response_type") != "code" || sent.Get("client_id") != client || sent.Get("redirect_uri") != redirect || sent.Get("scope") != "openid profile email" ||
		sent.Get("code_challenge_method") != "S256" || len(sent.Get("state")) != 43 || len(sent.Get("nonce")) != 43 {
		t.Errorf("asked for %v", sent)
	}
	p, next, err := s.Finish(t.Context(), flow, answer)
	if err != nil || p != (Person{Issuer: l.server.URL, Subject: "1815", Name: "ada"}) || next != "/conversations/c1" {
		t.Fatalf("got %+v, %q, %v", p, next, err)
	}
	form := l.forms[0]
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	if b64(sum[:]) != sent.Get("code_challenge") || form.Get("redirect_uri") != redirect {
		t.Errorf("sent %v for the code", form)
	}
	if _, _, err := s.Finish(t.Context(), flow, answer); err == nil {
		t.Error("a code was good twice")
	}
	if other, _, _ := l.begin(s); strings.Contains(other, sent.Get("nonce")) || other == flow {
		t.Error("what the browser carries can be read, or does not change")
	}
}

func TestAlgorithms(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := curve.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	l := newLiar(t)
	l.keys = append(l.keys, map[string]any{"kty": "EC", "crv": "P-256", "kid": "two", "x": b64(point[1:33]), "y": b64(point[33:])},
		map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": "three", "x": b64(public)}, map[string]any{"kty": "future"})
	s := l.signOn()
	for header, key := range map[string]crypto.Signer{
		`{"alg":"RS256","kid":"one"}`: rsaKey(), `{"alg":"PS256","kid":"one"}`: rsaKey(), `{"alg":"ES256","kid":"two"}`: curve, `{"alg":"EdDSA","kid":"three"}`: edwards, `{"alg":"RS256"}`: rsaKey(),
	} {
		l.idToken = func(nonce string) string { return l.signAs(header, key, l.claims(nonce)) }
		if _, err := l.finish(s); err != nil {
			t.Errorf("%s: %v", header, err)
		}
	}
	for header, key := range map[string]crypto.Signer{
		`{"alg":"ES256","kid":"one"}`: rsaKey(), `{"alg":"RS256","kid":"two"}`: curve, `{"alg":"EdDSA","kid":"two"}`: curve, `{"alg":"RS256","kid":"three"}`: edwards, `{"alg":"PS256","kid":"two"}`: rsaKey(),
	} {
		l.idToken = func(nonce string) string { return l.signAs(header, key, l.claims(nonce)) }
		if _, err := l.finish(s); err == nil {
			t.Errorf("%s with another kind of key is good", header)
		}
	}
}

// What a provider does not announce is not taken from it.
func TestUnannouncedAlgorithm(t *testing.T) {
	l := newLiar(t)
	l.meta["id_token_signing_alg_values_supported"] = []string{"ES256"}
	if _, err := l.finish(l.signOn()); err == nil {
		t.Error("RS256 is good, where ES256 was announced")
	}
	l = newLiar(t)
	delete(l.meta, "id_token_signing_alg_values_supported")
	if _, err := l.finish(l.signOn()); err != nil {
		t.Errorf("RS256, where nothing was announced: %v", err)
	}
}

func TestBadTokens(t *testing.T) {
	l := newLiar(t)
	s := l.signOn()
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := func(nonce string, pairs ...any) string {
		return l.sign("RS256", "one", with(l.claims(nonce), pairs...))
	}
	for name, token := range map[string]func(nonce string) string{
		"none at all": func(string) string { return "" },
		"garbage":     func(string) string { return "a.b.c" },
		"alg none": func(n string) string {
			return strings.Join([]string{b64([]byte(`{"alg":"none"}`)), strings.Split(good(n), ".")[1], ""}, ".")
		},
		"alg None": func(n string) string {
			return strings.Join([]string{b64([]byte(`{"alg":"None"}`)), strings.Split(good(n), ".")[1], ""}, ".")
		},
		"no signature":  func(n string) string { return good(n)[:strings.LastIndex(good(n), ".")+1] },
		"shared secret": func(n string) string { return l.sign("HS256", "one", l.claims(n)) },
		"unannounced":   func(n string) string { return l.sign("RS512", "one", l.claims(n)) },
		"critical header": func(n string) string {
			return l.signAs(`{"alg":"RS256","crit":["moon"],"moon":1}`, rsaKey(), l.claims(n))
		},
		"foreign key": func(n string) string { return l.signAs(`{"alg":"RS256","kid":"one"}`, foreign, l.claims(n)) },
		"unknown key": func(n string) string { return l.sign("RS256", "nine", l.claims(n)) },
		"changed claims": func(n string) string {
			p := strings.Split(good(n), ".")
			return p[0] + "." + strings.Split(good(n, "sub", "2"), ".")[1] + "." + p[2]
		},
		"absurd expiry":     func(n string) string { return good(n, "exp", 1e300) },
		"foreign issuer":    func(n string) string { return good(n, "iss", "https://evil.example") },
		"issuer with slash": func(n string) string { return good(n, "iss", l.server.URL+"/") },
		"foreign audience":  func(n string) string { return good(n, "aud", "other") },
		"no audience":       func(n string) string { return good(n, "aud", nil) },
		"two audiences":     func(n string) string { return good(n, "aud", []string{client, "other"}) },
		"other party":       func(n string) string { return good(n, "aud", []string{client, "other"}, "azp", "other") },
		"expired":           func(n string) string { return good(n, "exp", l.now.Add(-skew).Unix()) },
		"no expiry":         func(n string) string { return good(n, "exp", nil) },
		"not yet":           func(n string) string { return good(n, "nbf", l.now.Add(skew+time.Second).Unix()) },
		"of the future":     func(n string) string { return good(n, "iat", l.now.Add(skew+time.Second).Unix()) },
		"other nonce":       func(string) string { return good("another") },
		"no nonce":          func(n string) string { return good(n, "nonce", nil) },
		"no subject":        func(n string) string { return good(n, "sub", nil) },
		"long subject":      func(n string) string { return good(n, "sub", strings.Repeat("s", 256)) },
		"huge":              func(n string) string { return good(n, "more", strings.Repeat("s", maxToken)) },
	} {
		t.Run(name, func(t *testing.T) {
			l.idToken = token
			if p, err := l.finish(s); err == nil {
				t.Errorf("let in as %+v", p)
			}
		})
	}
	for name, pairs := range map[string][]any{
		"clock behind":   {"exp", l.now.Add(time.Second - skew).Unix()},
		"clock ahead":    {"nbf", l.now.Add(skew).Unix(), "iat", l.now.Add(skew).Unix()},
		"own party":      {"aud", []string{client, "other"}, "azp", client},
		"fraction":       {"exp", float64(l.now.Unix()) + 0.5},
		"odd groups":     {"groups", map[string]any{"a": 1}},
		"written number": {"email_verified", 7},
	} {
		t.Run(name, func(t *testing.T) {
			l.idToken = func(n string) string { return good(n, pairs...) }
			if _, err := l.finish(s); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the browser brings back must be what it was given, in this browser and lately.
func TestStaleEnds(t *testing.T) {
	l := newLiar(t)
	s := l.signOn()
	flow, answer, _ := l.begin(s)
	other, otherAnswer, _ := l.begin(s)
	stranger, err := l.signOn(func(c *Config) { c.Key = [32]byte{2} }).seal(loginState{State: answer.Get("state"), Until: l.now.Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flow   string
		answer url.Values
	}{
		"no cookie":          {"", answer},
		"another's cookie":   {other, answer},
		"another's answer":   {flow, otherAnswer},
		"no state":           {flow, url.Values{"code": answer["code"]}},
		"empty everything":   {"", url.Values{}},
		"cut":                {flow[:len(flow)-2], answer},
		"foreign key":        {stranger, answer},
		"not base64":         {"~" + flow, answer},
		"too long":           {flow + strings.Repeat("A", maxSealed), answer},
		"error, wrong state": {flow, url.Values{"error": {"access_denied"}, "state": {"x"}}},
	} {
		if _, _, err := s.Finish(t.Context(), c.flow, c.answer); !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(l.forms) != 0 {
		t.Error("a stranger's code was sent to the provider")
	}
	l.now = l.now.Add(FlowLife + time.Second)
	if _, _, err := s.Finish(t.Context(), flow, answer); !errors.Is(err, ErrStale) {
		t.Errorf("an old one: %v", err)
	}
}

func TestProvidersNo(t *testing.T) {
	l := newLiar(t)
	s := l.signOn()
	for _, word := range []string{"access_denied", "a\nb", strings.Repeat("x", 100)} {
		flow, answer, _ := l.begin(s)
		answer.Del("code")
		answer.Set("error", word)
		_, next, err := s.Finish(t.Context(), flow, answer)
		if !errors.Is(err, ErrDenied) || strings.ContainsAny(err.Error(), "\n") || len(err.Error()) > 150 || next != "/conversations/c1" {
			t.Errorf("%q: %v, %q", word, err, next)
		}
	}
	flow, answer, _ := l.begin(s)
	answer.Set("code", "unknown")
	if _, _, err := s.Finish(t.Context(), flow, answer); err == nil || !strings.Contains(err.Error(), "invalid_grant") || strings.Contains(err.Error(), "secret-of") {
		t.Errorf("got %v", err)
	}
}

// A provider that names itself must do so, and no answer may be another's.
func TestWhoseAnswer(t *testing.T) {
	for _, names := range []bool{false, true} {
		l := newLiar(t)
		l.meta["authorization_response_iss_parameter_supported"] = names
		s := l.signOn()
		for iss, good := range map[string]bool{"": !names, l.server.URL: true, "https://evil.example": false} {
			flow, answer, _ := l.begin(s)
			if iss != "" {
				answer.Set("iss", iss)
			}
			if _, _, err := s.Finish(t.Context(), flow, answer); (err == nil) != good {
				t.Errorf("names itself: %t, iss %q: %v", names, iss, err)
			}
		}
	}
}

func TestWhoMayComeIn(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name     string
		claims   []any
		userInfo map[string]any
		domains  []string
		group    string
		want     error
		person   string
		admin    *bool
	}{
		{name: "e-mail as a name", claims: []any{"preferred_username", nil, "email", "ada@example.org"}, person: "ada@example.org"},
		{name: "no name at all", claims: []any{"preferred_username", nil}, userInfo: map[string]any{"sub": "1815"}},
		{name: "name from userinfo", claims: []any{"preferred_username", nil}, userInfo: map[string]any{"sub": "1815", "preferred_username": "countess"}, person: "countess"},
		{name: "good domain", domains: []string{"Example.org"}, claims: []any{"email", "ada@EXAMPLE.ORG", "email_verified", true}, person: "ada"},
		{name: "verified as a text", domains: []string{"@example.org"}, claims: []any{"email", "ada@example.org", "email_verified", "true"}, person: "ada"},
		{name: "other domain", domains: []string{"example.org"}, claims: []any{"email", "ada@example.com", "email_verified", true}, want: ErrForeign},
		{name: "subdomain", domains: []string{"example.org"}, claims: []any{"email", "ada@evil.example.org", "email_verified", true}, want: ErrForeign},
		{name: "two ats", domains: []string{"example.org"}, claims: []any{"email", "ada@example.org@evil.example", "email_verified", true}, want: ErrForeign},
		{name: "unverified", domains: []string{"example.org"}, claims: []any{"email", "ada@example.org", "email_verified", false}, want: ErrUnverified},
		{name: "silent about it", domains: []string{"example.org"}, claims: []any{"email", "ada@example.org"}, want: ErrUnverified},
		{name: "no e-mail", domains: []string{"example.org"}, userInfo: map[string]any{"sub": "1815"}, want: ErrUnverified},
		{name: "e-mail from userinfo", domains: []string{"example.org"}, userInfo: map[string]any{"sub": "1815", "email": "ada@example.org", "email_verified": true}, person: "ada"},
		{name: "verified elsewhere does not count", domains: []string{"example.org"}, claims: []any{"email", "ada@example.org"},
			userInfo: map[string]any{"sub": "1815", "email": "other@example.org", "email_verified": true}, want: ErrUnverified},
		{name: "member", group: "captains", claims: []any{"groups", []string{"crew", "captains"}}, person: "ada", admin: &yes},
		{name: "one group", group: "captains", claims: []any{"groups", "captains"}, person: "ada", admin: &yes},
		{name: "no member", group: "captains", claims: []any{"groups", []string{"Captains", "crew"}}, person: "ada", admin: &no},
		{name: "no groups", group: "captains", userInfo: map[string]any{"sub": "1815"}, person: "ada", admin: &no},
		{name: "groups from userinfo", group: "captains", userInfo: map[string]any{"sub": "1815", "groups": []string{"captains"}}, person: "ada", admin: &yes},
		{name: "group that is not asked for", claims: []any{"groups", []string{"captains"}}, person: "ada"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLiar(t)
			l.userInfo = c.userInfo
			l.idToken = func(n string) string { return l.sign("RS256", "one", with(l.claims(n), c.claims...)) }
			p, err := l.finish(l.signOn(func(o *Config) { o.Domains, o.AdminGroup = c.domains, c.group }))
			if !errors.Is(err, c.want) || p.Name != c.person || (p.Admin == nil) != (c.admin == nil) || p.Admin != nil && *p.Admin != *c.admin {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
	l := newLiar(t)
	l.userInfo = map[string]any{"sub": "1816", "groups": []string{"captains"}}
	if p, err := l.finish(l.signOn(func(o *Config) { o.AdminGroup = "captains" })); err == nil {
		t.Errorf("claims about another person made %+v", p)
	}
}

// A provider that is down is asked again, but not by every request; one that was up is remembered.
func TestProviderComesAndGoes(t *testing.T) {
	l := newLiar(t)
	l.down = true
	s := l.signOn()
	for range 3 {
		if _, _, err := s.Begin(t.Context(), redirect, "/"); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
	}
	if l.asked != 1 {
		t.Errorf("a provider that is down was asked %d times at once", l.asked)
	}
	l.down, l.now = false, l.now.Add(failedFor)
	if _, err := l.finish(s); err != nil {
		t.Fatal(err)
	}
	l.down, l.now = true, l.now.Add(knownFor)
	if _, err := l.finish(s); err != nil {
		t.Errorf("one that was known: %v", err)
	}
	if l.asked != 3 {
		t.Errorf("asked %d times, want 3", l.asked)
	}
}

// The provider may change its keys between two sign-ons.
func TestKeysChange(t *testing.T) {
	l := newLiar(t)
	s := l.signOn()
	if _, err := l.finish(s); err != nil {
		t.Fatal(err)
	}
	next, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	l.keys = []map[string]any{rsaJWK("next", &next.PublicKey)}
	l.idToken = func(n string) string { return l.signAs(`{"alg":"RS256","kid":"next"}`, next, l.claims(n)) }
	if _, err := l.finish(s); err != nil {
		t.Error(err)
	}
	l.idToken = func(n string) string { return l.sign("RS256", "one", l.claims(n)) }
	if _, err := l.finish(s); err == nil {
		t.Error("a key that was taken back is still good")
	}
}

// An answer without an end is not read to its end.
func TestTooManyKeys(t *testing.T) {
	l := newLiar(t)
	l.keys = append([]map[string]any{{"kty": strings.Repeat("x", maxAnswer)}}, l.keys...)
	if _, err := l.finish(l.signOn()); err == nil {
		t.Error("all of it was read")
	}
}

// With a slash at its end or without, an issuer is the same. What the provider calls itself is what counts.
func TestIssuerWithASlash(t *testing.T) {
	for _, c := range []struct{ here, there string }{{"", "/"}, {"/", ""}, {"/", "/"}} {
		l := newLiar(t)
		l.meta["issuer"] = l.server.URL + c.there
		s := l.signOn(func(to *Config) { to.Issuer += c.here })
		for _, end := range []string{"", "/"} {
			l.idToken = func(n string) string { return l.sign("RS256", "one", with(l.claims(n), "iss", l.server.URL+end)) }
			p, err := l.finish(s)
			if (err == nil) != (end == c.there) || err == nil && p.Issuer != l.server.URL+c.there {
				t.Errorf("%q here, %q there, %q in the token: %+v %v", c.here, c.there, end, p, err)
			}
		}
	}
}

func TestBadDiscovery(t *testing.T) {
	for name, change := range map[string]map[string]any{
		"other issuer": {"issuer": "https://evil.example"}, "plain token endpoint": {"token_endpoint": "http://evil.example/token"},
		"no keys": {"jwks_uri": ""}, "odd start": {"authorization_endpoint": "javascript:alert(1)"}, "plain userinfo": {"userinfo_endpoint": "http://evil.example/me"},
	} {
		l := newLiar(t)
		maps.Copy(l.meta, change)
		s := l.signOn()
		if _, _, err := s.Begin(t.Context(), redirect, "/"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if s.Check(t.Context()) == nil {
			t.Errorf("%s: is good", name)
		}
	}
}

func TestConfig(t *testing.T) {
	for issuer, good := range map[string]bool{"https://id.example.org": true, "https://id.example.org/realms/one": true, "http://127.0.0.1:9000": true, "http://localhost:9000": true, "http://[::1]:9000": true,
		"http://id.example.org": false, "": false, "id.example.org": false, "https://user@id.example.org": false, "https://id.example.org?x=1": false, "ftp://id.example.org": false} {
		if _, err := New(Config{Issuer: issuer, ClientID: client}); (err == nil) != good {
			t.Errorf("issuer %q: %v", issuer, err)
		}
	}
	if _, err := New(Config{Issuer: "https://id.example.org"}); err == nil {
		t.Error("a client without an id is good")
	}
	for _, d := range []string{"", "a@b", "*.example.org", "a b"} {
		if _, err := New(Config{Issuer: "https://id.example.org", ClientID: client, Domains: []string{d}}); err == nil {
			t.Errorf("domain %q is good", d)
		}
	}
	s, err := New(Config{Issuer: "https://id.example.org", ClientID: client, Scopes: []string{"groups"}})
	if err != nil || s.Name() != "id.example.org" || fmt.Sprint(s.config.Scopes) != "[openid groups]" {
		t.Errorf("%q %v %v", s.Name(), s.config.Scopes, err)
	}
}

// Whatever a browser or a provider sends, it is refused and nothing breaks.
func FuzzOpen(f *testing.F) {
	s, err := New(Config{Issuer: "https://id.example.org", ClientID: client})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("")
	f.Add(strings.Repeat("A", 100))
	f.Fuzz(func(t *testing.T, flow string) {
		if got, err := s.open(flow); !errors.Is(err, ErrStale) {
			t.Errorf("%q is %+v", flow, got)
		}
	})
}

func FuzzToken(f *testing.F) {
	s, err := New(Config{Issuer: "http://127.0.0.1:1", ClientID: client, Client: &http.Client{Transport: unreachable{}}})
	if err != nil {
		f.Fatal(err)
	}
	p := &provider{algorithms: []string{"RS256", "ES256", "EdDSA"},
		keys: &goidc.StaticKeySet{PublicKeys: []crypto.PublicKey{&rsaKey().PublicKey, ed25519.PublicKey(make([]byte, 32))}}}
	f.Add("e30.e30.e30")
	f.Add(b64([]byte(`{"alg":"RS256"}`)) + ".e30.AAAA")
	f.Add(b64([]byte(`{"alg":"EdDSA","kid":null}`)) + ".e30.")
	f.Fuzz(func(t *testing.T, raw string) {
		if c, err := s.verify(t.Context(), p, raw, "nonce"); err == nil {
			t.Errorf("%q is %+v", raw, c)
		}
	})
}

// unreachable fails every request.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no server is there")
}
