package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/api"
	"deckhand/internal/httpapi/legacy"
	"deckhand/internal/session"
)

const frontEndPage = "<!doctype html><title>Front end</title><script>window.x = 1;\r\n</script><script src=\"/assets/app-1a2b.js\"></script><SCRIPT type=\"module\">import '/assets/app-1a2b.js'</SCRIPT>"

// frontEndFolder is what a build may leave behind, and things that must not be served.
func frontEndFolder(t *testing.T) string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret.txt")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"index.html": frontEndPage, "favicon.ico": "icon", "site.webmanifest": "{}", "assets/app-1a2b.js": "plain script", "assets/app-1a2b.js.br": "brotli script", "assets/app-1a2b.js.gz": "gzip script",
		"assets/font.woff2": "font", "assets/other.css": "css", "assets/other.css.gz": "gzip css", "assets/other.weird": "?", "locales/en/translation.json": `{"a":"b"}`, "other.html": "other page",
		".env": "hidden", "assets/.git/config": "hidden", "api/settings": "hidden", "openapi.json": "hidden", "conversations/own": "own file",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(secret, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"assets/out.js": secret, "assets/up": filepath.Dir(secret), "assets/in.js": "app-1a2b.js", "assets/deckhand": "."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "assets/pipe.js"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func withFrontEnd(t *testing.T, dir string) tune {
	t.Helper()
	f, err := legacy.OpenFrontEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return tune{config: func(c *Config) { c.Legacy.FrontEnd = f }}
}

// browse makes a request as a browser does; what it gets may be cached, and errors may be pages.
func (r *rig) browse(method, path string, header ...string) answer {
	r.t.Helper()
	req := r.request(method, path, nil, "X-Session-API-Key", "", "Accept-Encoding", "identity", "Accept", "text/html,*/*;q=0.8")
	setHeader(req, header)
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{res.StatusCode, string(b), res.Header}
}

// cookie logs a user in and returns the cookie to send.
func (r *rig) cookie(user string) string {
	r.t.Helper()
	a := r.do("POST", "/api/login", `{"key":"`+r.keys[user]+`"}`, "X-Session-API-Key", "").want(r.t, 200)
	value, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return value
}

func TestFrontEnd(t *testing.T) {
	r := newRig(t, withFrontEnd(t, frontEndFolder(t)))
	cookie := r.cookie("ada")
	const js, cached, fresh = "text/javascript; charset=utf-8", "public, max-age=2592000, immutable", "no-store"
	for _, c := range []struct {
		path, header string // a pair, split at the first colon
		status       int
		kind, cache  string
		text         string
	}{
		// Its page is for who is logged in.
		{"/", "", 401, "text/html; charset=utf-8", fresh, `src="./assets/deckhand/login.js"`},
		{"/", "Cookie:" + cookie, 200, "text/html; charset=utf-8", fresh, frontEndPage},
		{"/", "X-Session-API-Key:" + r.keys["ada"], 200, "text/html; charset=utf-8", fresh, frontEndPage},
		{"/index.html", "Cookie:" + cookie, 200, "text/html; charset=utf-8", fresh, frontEndPage},
		{"/other.html", "Cookie:" + cookie, 200, "text/html; charset=utf-8", fresh, frontEndPage},
		{"/conversations/abc", "Cookie:" + cookie, 200, "text/html; charset=utf-8", fresh, frontEndPage},
		{"/conversations/abc", "", 401, "text/html; charset=utf-8", fresh, `src="../assets/deckhand/login.js"`},
		{"/settings/mcp", "Cookie:" + cookie, 200, "text/html; charset=utf-8", fresh, frontEndPage},
		{"/a/b/c/d", "Cookie:" + cookie, 200, "text/html; charset=utf-8", fresh, frontEndPage},
		// Its files are public.
		{"/assets/app-1a2b.js", "", 200, js, cached, "plain script"},
		{"/assets/app-1a2b.js", "Accept-Encoding:gzip, br", 200, js, cached, "brotli script"},
		{"/assets/app-1a2b.js", "Accept-Encoding:gzip, br;q=0", 200, js, cached, "gzip script"},
		{"/assets/app-1a2b.js", "Accept-Encoding:GZIP ; q=0.5", 200, js, cached, "gzip script"},
		{"/assets/app-1a2b.js", "Accept-Encoding:zstd", 200, js, cached, "plain script"},
		{"/assets/other.css", "Accept-Encoding:br, gzip", 200, "text/css; charset=utf-8", cached, "gzip css"},
		{"/assets/in.js", "", 200, js, cached, "plain script"},
		{"/assets/font.woff2", "", 200, "font/woff2", cached, "font"},
		{"/assets/other.weird", "", 200, "application/octet-stream", cached, "?"},
		{"/favicon.ico", "", 200, "image/x-icon", fresh, "icon"},
		{"/site.webmanifest", "", 200, "application/manifest+json", fresh, "{}"},
		{"/locales/en/translation.json", "", 200, "application/json", fresh, `{"a":"b"}`},
		{"/conversations/own", "", 200, "application/octet-stream", fresh, "own file"},
		// What is ours stays ours.
		{"/login", "", 200, "text/html; charset=utf-8", fresh, `<form id="form">`},
		{"/docs", "Cookie:" + cookie, 200, "text/html; charset=utf-8", fresh, "createConversation"},
		{"/openapi.json", "Cookie:" + cookie, 200, "application/json", fresh, `"openapi"`},
		{"/alive", "", 200, "application/json", fresh, `{"status":"ok"}`},
		{"/assets/deckhand/login.js", "", 200, js, fresh, "ticket"},
		{"/assets/deckhand/app-1a2b.js", "", 404, "application/json", fresh, "File not found"},
		{"/api/settings", "", 401, "application/json", fresh, "Unauthorized"},
		{"/api/settings/x", "Cookie:" + cookie, 404, "application/json", fresh, "Path not found"},
		{"/api", "Cookie:" + cookie, 404, "application/json", fresh, "Path not found"},
		{"/socket.io/nothing/here", "Cookie:" + cookie, 404, "application/json", fresh, "Path not found"},
		{"/mcp/x/y", "Cookie:" + cookie, 404, "application/json", fresh, "Path not found"},
		{"/feedback/x", "Cookie:" + cookie, 404, "application/json", fresh, "Path not found"},
		{"/integrations/x", "Cookie:" + cookie, 404, "application/json", fresh, "Path not found"},
		// What only looks like its page or file is not there for a program.
		{"/settings/mcp", "Accept:*/*", 401, "application/json", fresh, "Unauthorized"},
		{"/assets/gone.js", "Accept:*/*", 401, "application/json", fresh, "Unauthorized"},
	} {
		name, value, _ := strings.Cut(c.header, ":")
		var header []string
		if name != "" {
			header = []string{name, value}
		}
		a := r.browse("GET", c.path, header...)
		if a.status != c.status || a.header.Get("Content-Type") != c.kind || a.header.Get("Cache-Control") != c.cache || !strings.Contains(a.body, c.text) {
			t.Errorf("GET %s %.30s: %d %s, %s: %.200q", c.path, c.header, a.status, a.header.Get("Content-Type"), a.header.Get("Cache-Control"), a.body)
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s may be taken for something else", c.path)
		}
		packed := map[bool]string{strings.HasPrefix(c.text, "gzip "): "gzip", strings.HasPrefix(c.text, "brotli "): "br"}[true]
		if a.header.Get("Content-Encoding") != packed || strings.Contains(c.path, "app-1a2b") && a.status == 200 && a.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("GET %s %s: %v", c.path, c.header, a.header)
		}
		if head := r.browse("HEAD", c.path, header...); head.status != a.status || head.body != "" {
			t.Errorf("HEAD %s: %d %q", c.path, head.status, head.body)
		}
	}
	r.browse("GET", "/settings/mcp", "Accept", "*/*", "Cookie", cookie).want(t, 404, "Path not found")
	r.browse("GET", "/assets/gone.js", "Accept", "*/*", "Cookie", cookie).want(t, 404, "Path not found")
	r.browse("POST", "/settings/mcp", "Cookie", cookie, "Origin", r.base).want(t, 404)
	first := r.browse("GET", "/assets/font.woff2")
	r.browse("GET", "/assets/font.woff2", "If-Modified-Since", first.header.Get("Last-Modified")).want(t, http.StatusNotModified)
	r.browse("GET", "/assets/app-1a2b.js", "Range", "bytes=0-4").want(t, http.StatusPartialContent, "plain")
}

// Nothing outside of the folder, nothing hidden, nothing that is no file.
func TestFrontEndKeepsItsFolder(t *testing.T) {
	r := newRig(t, withFrontEnd(t, frontEndFolder(t)))
	cookie := r.cookie("ada")
	for _, path := range []string{"/assets/out.js", "/assets/up/secret.txt", "/assets/pipe.js", "/.env", "/assets/.git/config", "/%2eenv", "/assets/%2e%2e/.env", "/assets/..%2f.env", "/../secret.txt",
		"/..%2f..%2fetc%2fpasswd", "/assets/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/assets//app-1a2b.js", "/assets/./app-1a2b.js", "/%00", "/assets/app-1a2b.js%00.css", "/assets", "/assets/", "/..%5csecret.txt", "//etc/passwd"} {
		a := r.browse("GET", path, "Accept", "*/*", "Cookie", cookie)
		if a.status != 404 || strings.Contains(a.body, "hidden") || strings.Contains(a.body, "outside") || strings.Contains(a.body, "root:") {
			t.Errorf("%s: %d %.80q", path, a.status, a.body)
		}
	}
}

func TestFrontEndPolicy(t *testing.T) {
	for domain, allows := range map[string][2]string{
		"":                  {"frame-src 'none'", "connect-src 'self'"},
		"ports.example.org": {"frame-src http://*.ports.example.org:*", "connect-src 'self' http://*.ports.example.org:*"},
	} {
		r := newRig(t, withFrontEnd(t, frontEndFolder(t)), tune{config: func(c *Config) { c.Forwarding.Domain = domain }})
		policy := r.browse("GET", "/", "Cookie", r.cookie("ada")).want(t, 200).header.Get("Content-Security-Policy")
		hash := func(text string) string {
			sum := sha256.Sum256([]byte(text))
			return " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		}
		for _, part := range []string{"default-src 'none'; ", "; " + allows[1] + "; ", "; img-src 'self' data: blob:; ", "; frame-ancestors 'none'", "; " + allows[0] + "; ",
			"; script-src 'self' 'wasm-unsafe-eval'" + hash("window.x = 1;\n") + hash("import '/assets/app-1a2b.js'") + "; "} {
			if !strings.Contains(policy+"; ", part) {
				t.Errorf("%q is not in %q", part, policy)
			}
		}
		if strings.Contains(policy, "unsafe-eval'") && !strings.Contains(policy, "wasm-unsafe-eval'") || strings.Contains(strings.Split(policy, "style-src")[0], "unsafe-inline") || strings.Contains(policy, "*;") && domain == "" {
			t.Errorf("too much is allowed: %s", policy)
		}
	}
}

// An operator may let the front end load its diff editor from elsewhere: scripts, styles
// and fonts, and nothing else.
func TestFrontEndHosts(t *testing.T) {
	r := newRig(t, withFrontEnd(t, frontEndFolder(t)), tune{config: func(c *Config) { c.Legacy.FrontEndHosts = []string{"cdn.example.org"} }})
	policy := r.browse("GET", "/", "Cookie", r.cookie("ada")).want(t, 200).header.Get("Content-Security-Policy")
	for part := range strings.SplitSeq(policy, "; ") {
		kind, _, _ := strings.Cut(part, " ")
		if want := kind == "script-src" || kind == "style-src" || kind == "font-src"; strings.Contains(part, "https://cdn.example.org") != want {
			t.Errorf("%s", part)
		}
	}
	for host, want := range map[string]bool{"cdn.jsdelivr.net": true, "localhost:8443": true, "a b": false, "https://x.example": false, "*": false, "x;y": false, "": false, "x.example/path": false} {
		if legacy.ValidSource(host) != want {
			t.Errorf("%q is allowed: %t", host, !want)
		}
	}
}

func TestFrontEndThatIsNone(t *testing.T) {
	empty, broken := t.TempDir(), t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(broken, "index.html")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, broken, filepath.Join(empty, "nothing"), "/dev/null"} {
		f, err := legacy.OpenFrontEnd(dir)
		if err == nil || f != nil || !strings.Contains(err.Error(), "which contains index.html and assets") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	dir := frontEndFolder(t)
	r := newRig(t, withFrontEnd(t, dir))
	if err := os.Remove(filepath.Join(dir, "index.html")); err != nil { // while a new one is being built
		t.Fatal(err)
	}
	r.browse("GET", "/", "Cookie", r.cookie("ada")).want(t, 500, "index.html")
}

// A front end looks for a key in the conversation, and sends it back. It is good
// for the user's conversations while the login lives, and for nothing else.
func TestPageKeys(t *testing.T) {
	r := newRig(t, withFrontEnd(t, frontEndFolder(t)))
	r.settle("ada", "bob", "admin")
	id, at := "", ""
	keyOf := func(header ...string) *string {
		t.Helper()
		return decoded[api.Conversation](t, r.do("GET", at, "", append([]string{"X-Session-API-Key", ""}, header...)...).want(t, 200)).SessionAPIKey
	}
	id = r.create(`{}`)
	at = "/api/conversations/" + id
	if key := keyOf("X-Session-API-Key", r.keys["ada"]); key != nil {
		t.Errorf("a client with a key of its own is given another: %q", *key)
	}
	cookie := r.cookie("ada")
	given := keyOf("Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	if given == nil || strings.Contains(cookie, *given) || strings.Contains(r.do("GET", "/api/conversations", "", "X-Session-API-Key", "", "Cookie", cookie).body, *given) {
		t.Fatalf("the key of the page: %v", given)
	}
	page := *given
	with := func(method, path, body string) answer {
		return r.do(method, path, body, "X-Session-API-Key", page)
	}
	if key := keyOf("X-Session-API-Key", page); key == nil || *key != page {
		t.Errorf("asked with the key itself: %v", key)
	}
	with("GET", at+"/events", "").want(t, 200)
	with("POST", at+"/message", `{"message":"hello"}`).want(t, 200)
	for _, c := range [][3]string{{"POST", "/api/login", `{"key":"` + page + `"}`}, {"POST", "/api/keys", `{}`}, {"GET", "/api/keys", ""}, {"GET", "/api/me", ""}, {"GET", "/api/settings", ""}, {"POST", "/api/settings", `{"language":"de"}`},
		{"GET", "/api/secrets", ""}, {"POST", "/api/conversations", `{}`}, {"GET", "/api/conversations", ""}, {"POST", "/mcp", `{}`}, {"GET", "/docs", ""}, {"POST", "/api/logout", ""}, {"GET", "/metrics", ""}} {
		with(c[0], c[1], c[2]).want(t, 401)
	}
	bobs := decoded[api.ConversationResponse](t, r.as("bob", "POST", "/api/conversations", `{}`).want(t, 200)).ConversationID
	with("GET", "/api/conversations/"+bobs, "").want(t, 404)

	stream, err := r.client.Do(r.request("GET", at+"/events/stream", nil, "X-Session-API-Key", page))
	if err != nil || stream.StatusCode != 200 {
		t.Fatal(err, stream)
	}
	defer stream.Body.Close()
	r.do("POST", "/api/logout", "", "X-Session-API-Key", "", "Cookie", cookie).want(t, 200)
	_, _ = io.Copy(io.Discard, stream.Body) // it ends with the login
	with("GET", at, "").want(t, 401)
	if logs := r.logs.String(); strings.Contains(logs, page) {
		t.Error("the log has the key")
	}

	plain := newRig(t)
	plain.settle("ada")
	at = "/api/conversations/" + plain.create(`{}`)
	r = plain
	if key := keyOf("Cookie", plain.cookie("ada")); key != nil {
		t.Errorf("without a front end: %q", *key)
	}
}

// Sockets take the key of a page, and end with its login like all that it opened.
func TestPageKeyOnSockets(t *testing.T) {
	for _, transport := range []string{"websocket", "polling"} {
		r := newSocketRig(t, withFrontEnd(t, frontEndFolder(t)))
		id := r.create(`{}`)
		cookie := r.cookie("ada")
		page := *decoded[api.Conversation](t, r.do("GET", "/api/conversations/"+id, "", "X-Session-API-Key", "", "Cookie", cookie)).SessionAPIKey
		bobs := decoded[api.ConversationResponse](t, r.as("bob", "POST", "/api/conversations", `{}`).want(t, 200)).ConversationID
		if _, answer := r.connect(join{transport: transport, query: q(bobs, "session_api_key", page)}); !strings.Contains(answer, "Conversation not found") {
			t.Errorf("another user's conversation: %s", answer)
		}
		byCookie := r.joined(join{transport: transport, query: q(id), header: []string{"Cookie", cookie, "Origin", r.base}})
		byPage := r.joined(join{transport: transport, query: q(id, "session_api_key", page)})
		byKey := r.joined(join{transport: transport, user: "ada", query: q(id)})
		for _, c := range []*legacyClient{byCookie, byPage, byKey} {
			c.untilState(session.AgentLoading)
		}
		r.do("POST", "/api/logout", "", "X-Session-API-Key", "", "Cookie", cookie).want(t, 200)
		for _, c := range []*legacyClient{byCookie, byPage} {
			c.revoked()
		}
		if got := byKey.ask("oh_user_action", message("still here")); !strings.Contains(got, `"success":true`) {
			t.Errorf("%s: the socket of a key: %s", transport, got)
		}
		if _, answer := r.connect(join{transport: transport, query: q(id, "session_api_key", page)}); !strings.Contains(answer, "invalid_session_api_key") {
			t.Errorf("after the logout: %s", answer)
		}
	}
}

// The cookie is taken from pages of this server alone: those of other ports are
// another origin, although browsers send the cookie along.
func TestCookieIsForOwnPages(t *testing.T) {
	const public, foreign = "https://deckhand.example.org", "https://tools.example.org"
	r := newRig(t, tune{config: func(c *Config) {
		c.Access.PublicURL, c.Access.Origins, c.Access.Hosts = public+"/deckhand", []string{foreign}, []string{"deckhand.example.org"}
	}})
	r.settle("ada")
	id := r.create(`{}`)
	cookie := r.cookie("ada")
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "X-Session-API-Key", "", "Cookie", cookie}
	for origin, good := range map[string]bool{"": true, r.base: true, public: true, foreign: false, "null": false, "http://127.0.0.1:1": false, "http://localhost": false,
		"http://deckhand.example.org": false, public + ":8443": false, "http://p8000-abcdefghijklmnopqrstuvwxyz.localhost": false} {
		asked := []string{"X-Session-API-Key", "", "Cookie", cookie, "Origin", origin}
		for name, status := range map[string]int{
			"GET":       r.do("GET", "/api/me", "", asked...).status,
			"POST":      r.do("POST", "/api/settings", `{"language":"en"}`, asked...).status,
			"WebSocket": r.upgrade("/api/conversations/"+id+"/events/ws", append(upgrade, "Origin", origin)),
		} {
			if ok := status == 200 || status == 101; ok != good || !ok && status != 401 && status != 403 {
				t.Errorf("%s with Origin %q: %d", name, origin, status)
			}
		}
	}
}
