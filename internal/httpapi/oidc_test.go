package httpapi

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/httpapi/page"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/oidc"
)

var idKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// vouching is an API with the smallest provider there is: a code is the nonce and
// who it is for. What a real one does is tested where the server is started.
func vouching(t *testing.T, change func(*Config)) (r *rig, issuer string) {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	mux := http.NewServeMux()
	id := httptest.NewServer(mux)
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); id.Close() })
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": id.URL, "authorization_endpoint": id.URL + "/auth", "token_endpoint": id.URL + "/token", "jwks_uri": id.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "n": b64(idKey().N.Bytes()), "e": b64(big.NewInt(int64(idKey().E)).Bytes())}}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		nonce, who, _ := strings.Cut(r.PostFormValue("code"), " ")
		claims, _ := json.Marshal(map[string]any{"iss": id.URL, "aud": "deckhand", "sub": who, "preferred_username": who, "nonce": nonce, "exp": time.Now().Add(time.Minute).Unix()})
		text := b64([]byte(`{"alg":"RS256"}`)) + "." + b64(claims)
		sum := sha256.Sum256([]byte(text))
		signature, err := rsa.SignPKCS1v15(nil, idKey(), crypto.SHA256, sum[:])
		if err != nil {
			t.Error(err)
		}
		answer(w, map[string]any{"access_token": "access-canary", "token_type": "Bearer", "id_token": text + "." + b64(signature)})
	})
	s, err := oidc.New(oidc.Config{Issuer: id.URL, ClientID: "deckhand", Name: "Example ID", Client: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return newRig(t, tune{config: func(c *Config) {
		c.Page.SignOn = s
		if change != nil {
			change(c)
		}
	}}), id.URL
}

// cookieOf finds what an answer sets.
func cookieOf(t *testing.T, a answer, name string) *http.Cookie {
	t.Helper()
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("%d sets no cookie %s: %v", a.status, name, a.header["Set-Cookie"])
	return nil
}

// begin starts a sign-on and gives the provider's part of it.
func begin(t *testing.T, r *rig, path string, header ...string) (sent url.Values, flow *http.Cookie) {
	t.Helper()
	a := r.direct("192.0.2.1", "GET", path, header...).want(t, 303)
	u, err := url.Parse(a.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	name := page.FlowCookie
	if strings.HasPrefix(u.Query().Get("redirect_uri"), "https:") {
		name = "__Host-" + page.FlowCookie
	}
	return u.Query(), cookieOf(t, a, name)
}

// back is the provider sending the browser back.
func back(r *rig, who string, sent url.Values, flow *http.Cookie, header ...string) answer {
	r.t.Helper()
	q := url.Values{"state": sent["state"], "code": {sent.Get("nonce") + " " + who}}
	return r.direct("192.0.2.1", "GET", "/login/oidc/callback?"+q.Encode(), append([]string{"Cookie", flow.Name + "=" + flow.Value, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, header...)...)
}

func TestSignOnOverHTTP(t *testing.T) {
	r, _ := vouching(t, nil)
	r.do("GET", "/api/login/options", "", "X-Session-API-Key", "").want(t, 200, `{"oidc":{"name":"Example ID","start_path":"/login/oidc"}}`)
	sent, flow := begin(t, r, "/login/oidc?next=/conversations/c1")
	if sent.Get("redirect_uri") != "http://localhost/login/oidc/callback" || sent.Get("code_challenge_method") != "S256" {
		t.Errorf("asked for %v", sent)
	}
	if !flow.HttpOnly || flow.SameSite != http.SameSiteLaxMode || flow.Secure || flow.MaxAge != int(oidc.FlowLife.Seconds()) {
		t.Errorf("the flow is %+v", flow)
	}
	a := back(r, "Grace", sent, flow).want(t, 200, `content="0;url=../../conversations/c1"`)
	session, gone := cookieOf(t, a, rest.CookieName), cookieOf(t, a, page.FlowCookie)
	if !session.HttpOnly || session.SameSite != http.SameSiteStrictMode || session.Secure || session.Path != "/" || session.MaxAge != 24*3600 || gone.MaxAge >= 0 {
		t.Errorf("got %+v and %+v", session, gone)
	}
	if strings.Contains(a.body, "<script") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") || a.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the page is not strict: %v", a.header)
	}
	ask := func(method, path string) answer {
		return r.direct("192.0.2.2", method, path, "Cookie", rest.CookieName+"="+session.Value, "Sec-Fetch-Site", "same-origin", "Origin", "http://localhost")
	}
	ask("GET", "/api/me").want(t, 200, `{"user":"grace","admin":false}`)
	ask("POST", "/api/logout").want(t, 200)
	ask("GET", "/api/me").want(t, 401)
	if strings.Contains(r.logs.String(), "access-canary") || strings.Contains(r.logs.String(), sent.Get("nonce")) {
		t.Error("something secret is in the log")
	}
}

// Behind a proxy under a path: the address is the public one, and all cookies are for TLS alone.
func TestSignOnAtThePublicAddress(t *testing.T) {
	r, _ := vouching(t, func(c *Config) {
		c.Access.PublicURL, c.Access.Hosts = "https://deckhand.example.org/ship", []string{"deckhand.example.org"}
	})
	for _, path := range []string{"/login/oidc", "/ship/login/oidc"} {
		sent, flow := begin(t, r, path, "Host", "deckhand.example.org")
		if sent.Get("redirect_uri") != "https://deckhand.example.org/ship/login/oidc/callback" || !flow.Secure || flow.Path != "/" || flow.Domain != "" {
			t.Errorf("%v, %+v", sent, flow)
		}
		a := back(r, "grace", sent, flow, "Host", "deckhand.example.org").want(t, 200, `url=../../"`)
		if session := cookieOf(t, a, rest.CookieName); !session.Secure || session.Path != "/ship/" {
			t.Errorf("got %+v", session)
		}
	}
}

// Whatever goes wrong leads to the login page, without a login.
func TestFailedSignOns(t *testing.T) {
	r, _ := vouching(t, nil)
	sent, flow := begin(t, r, "/login/oidc")
	other, otherFlow := begin(t, r, "/login/oidc")
	denied := url.Values{"state": sent["state"], "error": {"access_denied"}}
	empty := &http.Cookie{Name: page.FlowCookie}
	for name, c := range map[string]struct {
		a    answer
		want string
	}{
		"no cookie":           {back(r, "eve", sent, empty), "expired"},
		"another user's flow": {back(r, "eve", sent, otherFlow), "expired"},
		"another user's code": {back(r, "eve", other, flow), "expired"},
		"another nonce":       {back(r, "eve", url.Values{"state": sent["state"], "nonce": other["nonce"]}, flow), "failed"},
		"no":                  {r.direct("192.0.2.3", "GET", "/login/oidc/callback?"+denied.Encode(), "Cookie", flow.Name+"="+flow.Value), "denied"},
		"nothing":             {r.direct("192.0.2.3", "GET", "/login/oidc/callback"), "expired"},
	} {
		c.a.want(t, 303)
		if got := c.a.header.Get("Location"); got != "../../login?sign_on="+c.want {
			t.Errorf("%s: leads to %s", name, got)
		}
		if cookies := fmt.Sprint(c.a.header["Set-Cookie"]); strings.Contains(cookies, rest.CookieName+"=") {
			t.Errorf("%s: sets %s", name, cookies)
		}
	}
	if users := decoded[[]api.User](t, r.as("admin", "GET", "/api/users", "").want(t, 200)); len(users) != 3 {
		t.Errorf("a user was made: %+v", users)
	}
	// She is known, and then disabled.
	sent, flow = begin(t, r, "/login/oidc")
	back(r, "grace", sent, flow).want(t, 200)
	r.as("admin", "PATCH", "/api/users/grace", `{"disabled":true}`).want(t, 200)
	sent, flow = begin(t, r, "/login/oidc")
	if a := back(r, "grace", sent, flow).want(t, 303); !strings.HasSuffix(a.header.Get("Location"), "sign_on=disabled") {
		t.Errorf("leads to %s", a.header.Get("Location"))
	}
	if a := r.direct("192.0.2.3", "GET", "/login/oidc", "Host", "evil.example"); a.status != http.StatusMisdirectedRequest {
		t.Errorf("began for another host: %d", a.status)
	}
}

// Who is not let in may try again, and gets where they wanted to go.
func TestFailedSignOnsLeadOn(t *testing.T) {
	r, _ := vouching(t, nil)
	sent, flow := begin(t, r, "/login/oidc?next=/conversations/c1%3Fx=1")
	no := r.direct("192.0.2.3", "GET", "/login/oidc/callback?"+url.Values{"state": sent["state"], "error": {"access_denied"}}.Encode(), "Cookie", flow.Name+"="+flow.Value).want(t, 303)
	if got := no.header.Get("Location"); got != "../../login?next=%2Fconversations%2Fc1%3Fx%3D1&sign_on=denied" {
		t.Errorf("leads to %s", got)
	}
	for next, want := range map[string]string{"/settings/keys": "../login?next=%2Fsettings%2Fkeys&sign_on=unavailable", "//evil.example": "../login?sign_on=unavailable", "/": "../login?sign_on=unavailable"} {
		s, err := oidc.New(oidc.Config{Issuer: "http://127.0.0.1:1", ClientID: "deckhand", Client: &http.Client{Transport: &http.Transport{}}})
		if err != nil {
			t.Fatal(err)
		}
		down := newRig(t, tune{config: func(c *Config) { c.Page.SignOn = s }})
		if got := down.direct("192.0.2.1", "GET", "/login/oidc?next="+url.QueryEscape(next)).want(t, 303).header.Get("Location"); got != want {
			t.Errorf("%s leads to %s, want %s", next, got, want)
		}
	}
}

// Tabs of one browser sign on beside each other.
func TestSignOnInTwoTabs(t *testing.T) {
	r, _ := vouching(t, nil)
	jar := map[string]string{}
	carry := func() (header []string) {
		var all []string
		for name, value := range jar {
			all = append(all, name+"="+value)
		}
		return []string{"Cookie", strings.Join(all, "; ")}
	}
	keep := func(a answer) answer {
		for _, c := range (&http.Response{Header: a.header}).Cookies() {
			if jar[c.Name] = c.Value; c.MaxAge < 0 {
				delete(jar, c.Name)
			}
		}
		return a
	}
	begun := func(next string) url.Values {
		u, err := url.Parse(keep(r.direct("192.0.2.1", "GET", "/login/oidc?next="+next, carry()...).want(t, 303)).header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		return u.Query()
	}
	finish := func(sent url.Values) answer {
		q := url.Values{"state": sent["state"], "code": {sent.Get("nonce") + " grace"}}
		return keep(r.direct("192.0.2.1", "GET", "/login/oidc/callback?"+q.Encode(), carry()...))
	}
	one, two := begun("/one"), begun("/two")
	finish(one).want(t, 200, `url=../../one"`)
	if a := finish(one).want(t, 303); !strings.HasSuffix(a.header.Get("Location"), "sign_on=expired") {
		t.Errorf("a second time leads to %s", a.header.Get("Location"))
	}
	finish(two).want(t, 200, `url=../../two"`)
	for range 3 * page.MaxFlows {
		begun("/")
	}
	if delete(jar, rest.CookieName); len(jar) != page.MaxFlows {
		t.Errorf("the browser carries %d", len(jar))
	}
	finish(begun("/last")).want(t, 200, `url=../../last"`)
}

// Strangers cannot cause unlimited requests to the provider.
func TestFailedSignOnsAreCounted(t *testing.T) {
	r, _ := vouching(t, nil)
	last := answer{}
	for range 30 {
		last = r.direct("192.0.2.9", "GET", "/login/oidc/callback?state=x&code=y")
	}
	last.want(t, http.StatusTooManyRequests)
	if a := r.direct("192.0.2.9", "GET", "/login/oidc/callback?state=x&code=y", "Accept", "text/html").want(t, 303); a.header.Get("Location") != "../../login?sign_on=too_many" {
		t.Errorf("a browser is led to %s", a.header.Get("Location"))
	}
}

func TestNoSignOn(t *testing.T) {
	r := newRig(t)
	r.do("GET", "/api/login/options", "", "X-Session-API-Key", "").want(t, 200, `{"oidc":null}`)
	r.do("GET", "/login/oidc", "", "X-Session-API-Key", "").want(t, 404)
	r.do("GET", "/login/oidc/callback", "", "X-Session-API-Key", "").want(t, 404)
	s, err := oidc.New(oidc.Config{Issuer: "http://127.0.0.1:1", ClientID: "deckhand", Client: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	down := newRig(t, tune{config: func(c *Config) { c.Page.SignOn = s }})
	if a := down.direct("192.0.2.1", "GET", "/login/oidc").want(t, 303); a.header.Get("Location") != "../login?sign_on=unavailable" {
		t.Errorf("leads to %s", a.header.Get("Location"))
	}
}

func TestLocalPath(t *testing.T) {
	for next, want := range map[string]string{
		"": "/", "/": "/", "/conversations/c1": "/conversations/c1", "/settings/keys?x=1&y=%2F": "/settings/keys?x=1&y=%2F", "/?query=a//b": "/?query=a//b",
		"//evil.example": "/", "/\\evil.example": "/", "https://evil.example": "/", "javascript:alert(1)": "/", "evil": "/", "/../x": "/", "/%2E./x": "/", "/%2e%2E/x": "/", "/a//b": "/", "/\t/evil": "/", "/a\nb": "/",
		"/login": "/", "/login?x": "/", "/login/oidc": "/", "/api/me": "/", "/x#y": "/", "/x\"><script>": "/", "?x": "/", "/é": "/",
	} {
		if got := page.LocalPath(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

// Wherever a link wants to lead, a browser stays here.
func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/a?b", "//evil.example", "/\\evil.example", "/%2e%2e//evil"} {
		f.Add(s)
	}
	here, _ := url.Parse("https://deckhand.example.org/ship/login/oidc/callback")
	f.Fuzz(func(t *testing.T, next string) {
		got := page.LocalPath(next)
		there, err := here.Parse("../../" + strings.TrimPrefix(got, "/"))
		decoded, _ := url.PathUnescape(there.EscapedPath())
		if err != nil || strings.Contains(decoded, "/..") || there.Host != here.Host || there.Scheme != here.Scheme || !strings.HasPrefix(there.Path, "/ship/") || strings.ContainsAny(got, "\\\"<>\r\n\t ") {
			t.Errorf("%q leads to %q: %v %v", next, got, there, err)
		}
	})
}
