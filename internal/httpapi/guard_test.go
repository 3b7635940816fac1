package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

// The owner of a name can point it at the server, so only known names are answered.
func TestHosts(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Access.Hosts = []string{"deckhand.example.org", "Other.Example."} }})
	u, _ := url.Parse(r.base)
	for host, good := range map[string]bool{
		"localhost": true, "localhost:" + u.Port(): true, "LOCALHOST": true, "localhost.": true, "127.0.0.1": true, "127.0.0.1:99": true, "[::1]": true, "[::1]:3000": true,
		"192.0.2.7": true, "deckhand.example.org": true, "deckhand.example.org:8443": true, "DECKHAND.example.org.": true, "other.example": true,
		"evil.test": false, "evil.test:80": false, "localhost.evil.com": false, "127.evil.com": false, "127.0.0.1.evil.com": false, "127.0.0.1.nip.io": false,
		"2130706433": false, "0x7f000001": false, "0177.0.0.1": false, "127.1": false, "0": false, "deckhand.example.org.evil.com": false, "xdeckhand.example.org": false,
		"example.org": false, "localhost:1:2": false, "evil.test.": false, "localhost%00.evil.com": false, "localhost@evil.com": false,
	} {
		for _, path := range []string{"/alive", "/api/me", "/nothing"} {
			a := r.onHost(host, path)
			if misdirected := a.status == http.StatusMisdirectedRequest; misdirected == good && a.status != http.StatusBadRequest {
				t.Errorf("Host %s %s: %d %s", host, path, a.status, a.body)
			}
			if !good && a.status < 400 {
				t.Errorf("Host %s %s: %d %s", host, path, a.status, a.body)
			}
		}
	}
	if a := r.onHost("", "/alive"); a.status != http.StatusMisdirectedRequest && a.status != http.StatusBadRequest {
		t.Errorf("no host: %d", a.status)
	}
}

// onHost writes the head of the request itself: the client would correct it.
func (r *rig) onHost(host, path string) answer {
	r.t.Helper()
	u, _ := url.Parse(r.base)
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Session-API-Key: %s\r\nConnection: close\r\n\r\n", path, host, r.keys["ada"])
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return answer{res.StatusCode, string(b), res.Header}
}

// A frame without an origin gets the files of the page, and nothing else.
func TestFilesForAFrame(t *testing.T) {
	r := newRig(t, tune{})
	if got := r.do("GET", "/ui/diagram.js", "", "Origin", "null").status; got == http.StatusForbidden {
		t.Errorf("the script of diagrams gets %d", got)
	}
	r.do("GET", "/api/me", "", "Origin", "null").want(t, http.StatusForbidden)
	r.do("POST", "/ui/diagram.js", "", "Origin", "null").want(t, http.StatusForbidden)
	r.do("GET", "/ui/diagram.js", "", "Origin", "http://evil.test").want(t, http.StatusForbidden)
}

// A foreign web page can send requests, with any key it stole and any
// cookie the browser has; it says so in Origin.
func TestOrigins(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Access.Origins = []string{"https://tools.example.org"} }})
	r.settle("ada")
	id := r.create(`{}`)
	u, _ := url.Parse(r.base)
	for _, c := range []struct {
		origin []string
		good   bool
	}{
		{nil, true}, {[]string{r.base}, true}, {[]string{"https://tools.example.org"}, true},
		{[]string{"null"}, false}, {[]string{"http://evil.test"}, false}, {[]string{"http://localhost"}, false}, {[]string{"http://127.0.0.1:1"}, false},
		{[]string{"https://tools.example.org.evil.test"}, false}, {[]string{"http://tools.example.org"}, false}, {[]string{"https://tools.example.org:8443"}, false},
		{[]string{r.base, r.base}, false}, {[]string{r.base, "http://evil.test"}, false}, {[]string{"http://evil.test", r.base}, false}, {[]string{r.base + ".evil.test"}, false},
		{[]string{"file://"}, false}, {[]string{"http://" + u.Host + "@evil.test"}, false}, {[]string{"chrome-extension://" + u.Host}, false}, {[]string{"*"}, false}, {[]string{"http://"}, false},
	} {
		var header []string
		for _, o := range c.origin {
			header = append(header, "Origin", o)
		}
		upgrade := append([]string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}, header...)
		for name, status := range map[string]int{
			"GET":       r.do("GET", "/api/me", "", header...).status,
			"POST":      r.do("POST", "/api/settings", `{"language":"en"}`, header...).status,
			"alive":     r.do("GET", "/alive", "", header...).status,
			"login":     r.do("POST", "/api/login", `{"key":"`+r.keys["ada"]+`"}`, header...).status,
			"WebSocket": r.upgrade("/api/conversations/"+id+"/events/ws", upgrade),
		} {
			want := http.StatusForbidden
			if c.good {
				if want = http.StatusOK; name == "WebSocket" {
					want = http.StatusSwitchingProtocols
				}
			}
			if status != want {
				t.Errorf("%s with Origin %q: %d, want %d", name, c.origin, status, want)
			}
		}
	}
}

// upgrade asks for a WebSocket and leaves.
func (r *rig) upgrade(path string, header []string) int {
	r.t.Helper()
	req := r.request("GET", path, nil, header...)
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// A foreign origin that is allowed can also read the answer, and asks first.
func TestPreflight(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Access.Origins = []string{"https://tools.example.org"} }})
	ask := func(origin string) answer {
		return r.do("OPTIONS", "/api/settings", "", "X-Session-API-Key", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-session-api-key,content-type")
	}
	a := ask("https://tools.example.org")
	if a.status >= 300 || a.header.Get("Access-Control-Allow-Origin") != "https://tools.example.org" ||
		!strings.Contains(strings.ToLower(a.header.Get("Access-Control-Allow-Headers")), "x-session-api-key") || !strings.Contains(a.header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("%d %v", a.status, a.header)
	}
	if a.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("the browser's login is offered to another origin")
	}
	if got := r.do("GET", "/api/me", "", "Origin", "https://tools.example.org"); got.header.Get("Access-Control-Allow-Origin") != "https://tools.example.org" {
		t.Errorf("the answer cannot be read: %v", got.header)
	}
	for _, origin := range []string{"http://evil.test", "null"} {
		if a := ask(origin); a.status != http.StatusForbidden || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", origin, a.status, a.header)
		}
	}
}

// The browser's login is good for requests of our own pages only.
func TestCookie(t *testing.T) {
	r := newRig(t)
	login := r.do("POST", "/api/login", `{"key":"`+r.keys["ada"]+`"}`, "X-Session-API-Key", "").want(t, 200, `"ada"`)
	cookie := login.header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie lacks %s: %s", part, cookie)
		}
	}
	value, _, _ := strings.Cut(cookie, ";")
	if strings.Contains(cookie, r.keys["ada"]) {
		t.Error("the cookie holds the key")
	}
	with := func(method, path, body string, more ...string) answer {
		return r.do(method, path, body, append([]string{"X-Session-API-Key", "", "Cookie", value}, more...)...)
	}
	with("GET", "/api/me", "").want(t, 200, `"ada"`)
	with("GET", "/docs", "").want(t, 200, "createConversation")
	with("POST", "/api/settings", `{"language":"en"}`, "Sec-Fetch-Site", "same-origin").want(t, 200)
	for _, site := range []string{"cross-site", "same-site"} {
		with("POST", "/api/settings", `{"language":"de"}`, "Sec-Fetch-Site", site).want(t, 401)
		with("GET", "/api/me", "", "Sec-Fetch-Site", site).want(t, 401)
	}
	with("POST", "/api/settings", `{"language":"de"}`, "Origin", "http://evil.test").want(t, http.StatusForbidden)
	if got := r.do("GET", "/api/settings", ""); !strings.Contains(got.body, `"language":"en"`) {
		t.Errorf("a foreign page changed the settings: %s", got.body)
	}
	out := with("POST", "/api/logout", "").want(t, 200)
	if !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logout: %v", out.header)
	}
	with("GET", "/api/me", "").want(t, 401)
	r.do("POST", "/api/login", `{"ticket":"x"}`, "X-Session-API-Key", "").want(t, 401, `{"detail":"Unauthorized"}`)
	r.do("POST", "/api/login", `{"key":{"x":"`+canary+`"}}`, "X-Session-API-Key", "").want(t, 422, "body")
	r.do("POST", "/api/login", `{}`, "X-Session-API-Key", "").want(t, 401)
}

func TestRateLimit(t *testing.T) {
	r := newRig(t, tune{gate: access.Options{RatePerSecond: 0.001, Burst: 3}})
	for left := 2; left >= 0; left-- {
		a := r.do("GET", "/api/me", "").want(t, 200)
		if a.header.Get("RateLimit-Limit") != "3" || a.header.Get("RateLimit-Remaining") != fmt.Sprint(left) || a.header.Get("RateLimit-Reset") == "" {
			t.Errorf("%d left: %v", left, a.header)
		}
	}
	for _, path := range []string{"/api/me", "/api/conversations", "/nothing"} {
		a := r.do("GET", path, "").want(t, http.StatusTooManyRequests, api.CodeRateLimited)
		if n := a.header.Get("Retry-After"); len(n) < 3 || a.header.Get("RateLimit-Remaining") != "0" || a.header.Get("RateLimit-Limit") != "3" || a.header.Get("RateLimit-Reset") == "" {
			t.Errorf("%s: Retry-After %q, %v", path, n, a.header)
		}
	}
	r.do("GET", "/api/conversations", "").want(t, http.StatusTooManyRequests, `"status":"error"`)
	r.as("bob", "GET", "/api/me", "").want(t, 200) // others are not in the way
	r.do("GET", "/alive", "").want(t, 200)
}

func TestTooManyWrongKeys(t *testing.T) {
	r := newRig(t)
	limited := 0
	for range 60 {
		a := r.direct("10.9.9.9", "GET", "/api/me", "X-Session-API-Key", wrongKey)
		switch a.status {
		case http.StatusUnauthorized:
		case http.StatusTooManyRequests:
			if limited++; a.header.Get("Retry-After") == "" || !strings.Contains(a.body, api.CodeRateLimited) {
				t.Errorf("%v %s", a.header, a.body)
			}
		default:
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if limited < 20 {
		t.Errorf("only %d of 60 were slowed down", limited)
	}
	if a := r.direct("10.9.9.9", "GET", "/api/me", "X-Session-API-Key", r.keys["ada"]); a.status != 200 {
		t.Errorf("a good key from the same address: %d", a.status)
	}
	if a := r.direct("10.9.9.8", "GET", "/api/me", "X-Session-API-Key", wrongKey); a.status != 401 {
		t.Errorf("another address: %d", a.status)
	}
}

// bomb panics when it is asked about one conversation.
type bomb struct{ session.Index }

func (b bomb) Row(ctx context.Context, id session.ID) (session.Row, error) {
	if id == "boom" {
		panic("boom: " + canary)
	}
	return b.Index.Row(ctx, id)
}

func TestPanic(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Conversations.Index = bomb{c.Conversations.Index} }})
	r.settle("ada")
	for range 2 { // the second time shows that nothing is held
		a := r.do("GET", "/api/conversations/boom", "").want(t, 500, `"status":"error"`, api.CodeInternal)
		if strings.Contains(a.body, "boom") || strings.Contains(a.body, "goroutine") || strings.Contains(a.body, canary) {
			t.Errorf("the answer tells too much: %s", a.body)
		}
		line := ""
		for l := range strings.Lines(r.logs.String()) {
			if strings.Contains(l, "panic in a request") && strings.Contains(l, a.header.Get("X-Request-Id")) {
				line = l
			}
		}
		if !strings.Contains(line, "guard_test.go") {
			t.Errorf("the log has no stack under the request's id: %s", line)
		}
		r.do("POST", "/api/conversations", `{"conversation_id":"boom"}`, "Idempotency-Key", "k").want(t, 500)
	}
	r.do("GET", "/api/me", "").want(t, 200)
}

// Half an answer must not look like a whole one.
func TestPanicInTheMiddle(t *testing.T) {
	for _, p := range []any{"boom", http.ErrAbortHandler} {
		r := newRig(t, tune{config: func(c *Config) {
			c.Telemetry.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("up 1\n"))
				_ = http.NewResponseController(w).Flush()
				panic(p)
			})
		}})
		res, err := r.client.Do(r.request("GET", "/metrics", nil, "X-Session-API-Key", r.keys["admin"]))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("%v: taken for a whole answer: %q", p, b)
		}
		if logged := strings.Contains(r.logs.String(), "panic in a request"); logged != (p == "boom") {
			t.Errorf("%v: logged is %t", p, logged)
		}
	}
}

func TestPages(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/", "/docs", "/login"} {
		a := r.do("GET", path, "").want(t, 200, "Deckhand")
		if !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") || !strings.Contains(a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || a.header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, a.header)
		}
		if strings.Contains(a.body, "http://") || strings.Contains(a.body, "https://") {
			t.Errorf("%s loads from elsewhere", path)
		}
	}
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "login.js": "text/javascript; charset=utf-8", "theme.js": "text/javascript; charset=utf-8", "mark.svg": "image/svg+xml"} {
		if a := r.do("GET", "/assets/deckhand/"+name, "", "X-Session-API-Key", ""); a.status != 200 || a.header.Get("Content-Type") != kind {
			t.Errorf("%s: %d %v", name, a.status, a.header)
		}
	}
	for _, name := range []string{"docs.html", "nothing.css", "%2e%2e%2fpages.go", "style.css%00"} {
		if a := r.do("GET", "/assets/deckhand/"+name, ""); a.status != 404 {
			t.Errorf("%s: %d", name, a.status)
		}
	}
}

// What runs in a sandbox may have a name beside ours, and can give browsers cookies for both.
func TestCookieIsOfThisHostAlone(t *testing.T) {
	r := newRig(t)
	login := func(user string) (name, value string) {
		a := r.do("POST", "/api/login", `{"key":"`+r.keys[user]+`"}`, "X-Session-API-Key", "", "X-Forwarded-Proto", "https").want(t, 200)
		name, value, _ = strings.Cut(a.header.Get("Set-Cookie"), "=")
		value, rest, _ := strings.Cut(value, ";")
		if name != "__Host-deckhand_session" || !strings.Contains(rest, "Path=/;") || !strings.Contains(rest, "Secure") || strings.Contains(rest, "Domain") {
			t.Errorf("browsers will not hold on to %s: %s", name, rest)
		}
		return name, value
	}
	name, ada := login("ada")
	_, bob := login("bob")
	me := func(cookies string) answer {
		return r.do("GET", "/api/me", "", "X-Session-API-Key", "", "X-Forwarded-Proto", "https", "Cookie", cookies)
	}
	me(rest.CookieName+"="+bob+"; "+name+"="+ada).want(t, 200, `"ada"`)
	me(rest.CookieName+"="+bob).want(t, 401)
	r.do("POST", "/api/logout", "", "X-Session-API-Key", "", "X-Forwarded-Proto", "https", "Cookie", name+"="+ada).want(t, 200)
	me(name+"="+ada).want(t, 401)
}

// Whatever we answer, opened by itself it runs nothing, and no other site's page can use it.
func TestEveryAnswerIsInert(t *testing.T) {
	r := newRig(t)
	for path, own := range map[string]bool{"/": true, "/docs": true, "/nope": true, "/login": true, "/api/me": false, "/api/settings": false, "/api/nope": true,
		"/assets/deckhand/mark.svg": false, "/ui/nope.js": false, "/alive": false, "/openapi.json": false, "/%5C": false} {
		a := r.browse("GET", path, "X-Session-API-Key", r.keys["ada"])
		policy := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || !own && strings.Contains(policy, "script-src") {
			t.Errorf("%s may do %q", path, policy)
		}
		if h := a.header; h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
}
