package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/httpapi/rest"
)

// public is every route that needs no key. Who adds one must say so here.
var public = []string{"GET /alive", "GET /health", "GET /ready", "GET /server_info", "GET /login", "POST /api/login", "GET /assets/deckhand/{name}", "POST /integrations/{provider}/webhook",
	"GET /socket.io/{$}", "POST /socket.io/{$}", "GET /socket.io", "POST /socket.io",
	"GET /{$}", "GET /conversations/{conversation_id}", "GET /conversations/{conversation_id}/{tab}", "GET /settings", "GET /settings/{tab}", "GET /ui/{name}", "GET /manifest.webmanifest", "GET /sw.js", // the page, which is the same for all
	"GET /api/login/options", "GET /login/oidc", "GET /login/oidc/callback"}

const wrongKey = "dh_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// concrete fills the holes of a pattern.
func concrete(path string) string {
	for _, name := range rest.Wildcards(path) {
		path = strings.ReplaceAll(path, "{"+name+"}", "x1")
	}
	return strings.ReplaceAll(path, "{$}", "")
}

// No route can be added that a stranger can use without this test noticing.
func TestEveryRouteNeedsAKey(t *testing.T) {
	r := newRig(t)
	for i, rt := range new(Handler).table() {
		t.Run(rt.Method+" "+rt.Path, func(t *testing.T) {
			r := *r
			r.t = t
			path, known := concrete(rt.Path), slices.Contains(public, rt.Method+" "+rt.Path)
			if rt.Public != known {
				t.Fatalf("public is %t, want %t", rt.Public, known)
			}
			ask := func(n int, header ...string) answer {
				return r.direct(fmt.Sprintf("10.0.%d.%d", i, n), rt.Method, path, header...)
			}
			refused := map[string]answer{
				"no key":              ask(1),
				"a wrong key":         ask(2, "X-Session-API-Key", wrongKey),
				"a wrong bearer":      ask(3, "Authorization", "Bearer "+wrongKey),
				"a short key":         ask(4, "X-Session-API-Key", "dh_x"),
				"a forged cookie":     ask(5, "Cookie", rest.CookieName+"=v1.YWRtaW4.x"),
				"basic":               ask(6, "Authorization", "Basic "+r.keys["ada"]),
				"another's empty key": ask(7, "X-Session-API-Key", "", "Authorization", "Bearer"),
			}
			for name, a := range refused {
				if known {
					if a.status == http.StatusUnauthorized && rt.ID != "login" {
						t.Errorf("%s: %d %s", name, a.status, a.body)
					}
					continue
				}
				if a.status != http.StatusUnauthorized || a.body != `{"detail":"Unauthorized"}` {
					t.Errorf("%s: %d %s", name, a.status, a.body)
				}
			}
			if rt.Admin {
				if a := ask(8, "X-Session-API-Key", r.keys["ada"]); a.status != http.StatusForbidden || !strings.Contains(a.body, "admin") {
					t.Errorf("a plain key: %d %s", a.status, a.body)
				}
			}
		})
	}
	if len(public) != len(slices.Compact(slices.Clone(public))) || r.rows("ada") != nil {
		t.Error("the walk left something behind")
	}
}

// A key in the address would end up in logs, so it is not one.
func TestKeyInQueryIsNoKey(t *testing.T) {
	r := newRig(t)
	for i, name := range []string{"session_api_key", "api_key", "key", "token", "access_token", "X-Session-API-Key"} {
		a := r.direct(fmt.Sprintf("10.1.0.%d", i), "GET", "/api/me?"+name+"="+r.keys["ada"])
		if a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	if strings.Contains(r.logs.String(), r.keys["ada"]) {
		t.Error("the log shows a key that stood in the address")
	}
}

// A key that is mistaken for its ID must not appear in the log.
func TestKeyInPathIsNotLogged(t *testing.T) {
	r := newRig(t)
	r.do("DELETE", "/api/keys/"+r.keys["ada"], "").want(t, http.StatusNotFound)
	r.do("GET", "/api/nothing/"+r.keys["ada"], "").want(t, http.StatusNotFound)
	if log := r.logs.String(); strings.Contains(log, r.keys["ada"]) || !strings.Contains(log, "/api/keys/") {
		t.Errorf("the log: %s", log)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	r := newRig(t)
	for i, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nothing", 404, ""}, {"GET", "/api", 404, ""}, {"GET", "/api/", 404, ""}, {"GET", "/api/settings/", 404, ""}, {"GET", "/api/settings/x", 404, ""},
		{"GET", "/API/settings", 404, ""}, {"GET", "//api/settings", 404, ""}, {"GET", "/api/../api/settings", 404, ""}, {"GET", "/api/./settings", 404, ""},
		{"GET", "/assets/deckhand/../settings.go", 404, ""}, {"GET", "/.git/config", 404, ""}, {"GET", "/debug/pprof/", 404, ""}, {"GET", "/index.html", 404, ""},
		{"PUT", "/api/settings", 405, "POST"}, {"DELETE", "/api/settings", 405, "GET"}, {"POST", "/alive", 405, "GET"}, {"GET", "/api/login", 405, "POST"},
		{"PATCH", "/api/conversations", 405, "POST"}, {"PUT", "/api/conversations/x1", 405, "PATCH"}, {"TRACE", "/api/me", 405, "GET"}, {"BREW", "/api/me", 405, "GET"},
		{"DELETE", "/api/conversations", 405, "GET"}, {"POST", "/metrics", 405, "GET"},
	} {
		from := fmt.Sprintf("10.2.0.%d", i)
		if a := r.direct(from, c.method, c.path); a.status != 401 || a.body != `{"detail":"Unauthorized"}` {
			t.Errorf("%s %s without a key: %d %s", c.method, c.path, a.status, a.body)
		}
		a := r.direct(from, c.method, c.path, "X-Session-API-Key", r.keys["ada"])
		if a.status != c.status || !strings.Contains(a.header.Get("Allow"), c.allow) || !strings.Contains(a.body, `"msg_id":"REQUEST$`) {
			t.Errorf("%s %s: %d %s, allow %q", c.method, c.path, a.status, a.body, a.header.Get("Allow"))
		}
		if strings.Contains(a.body, "BREW") {
			t.Errorf("the answer repeats what the client made up: %s", a.body)
		}
	}
}

// HEAD is GET without a body, as everywhere on the web.
func TestHead(t *testing.T) {
	r := newRig(t)
	if a := r.do("HEAD", "/alive", ""); a.status != 200 || a.body != "" || a.header.Get("Content-Length") == "0" {
		t.Errorf("%d %q", a.status, a.body)
	}
}

// Only a key gives a role: what a client says about itself in headers is nothing.
func TestClaimedPrivilegeIsIgnored(t *testing.T) {
	r := newRig(t)
	claims := []string{"X-Forwarded-User", "admin", "X-Remote-User", "admin", "Remote-User", "admin", "X-User", "admin", "X-Role", "admin", "X-Scopes", "admin", "X-Admin", "true",
		"Forwarded", "for=127.0.0.1;by=admin", "X-Original-URL", "/metrics", "X-HTTP-Method-Override", "DELETE"}
	r.do("GET", "/api/me", "", claims...).want(t, 200, `{"user":"ada","admin":false}`)
	r.do("GET", "/metrics", "", claims...).want(t, http.StatusForbidden)
	r.do("POST", "/api/keys", `{"user":"bob"}`, claims...).want(t, http.StatusForbidden)
	r.do("POST", "/api/keys", `{"admin":true}`, claims...).want(t, http.StatusForbidden)
	if a := r.direct("10.3.0.1", "GET", "/api/me", claims...); a.status != 401 {
		t.Errorf("without a key: %d %s", a.status, a.body)
	}
	// The failures above are one client's, whatever it says about where it comes from.
	limited := false
	for i := range 60 {
		a := r.direct("10.3.0.1", "GET", "/api/me", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i), "X-Real-IP", fmt.Sprintf("192.0.2.%d", i))
		limited = limited || a.status == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("a forwarded address that the client made up escapes the limit")
	}
}

func TestMetricsForAdmins(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) {
		c.Telemetry.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })
	}})
	r.as("admin", "GET", "/metrics", "").want(t, 200, "up 1")
	r.as("ada", "GET", "/metrics", "").want(t, http.StatusForbidden, "admin key")
	bare := newRig(t)
	bare.as("admin", "GET", "/metrics", "").want(t, http.StatusNotFound, "--metrics-addr")
}

func TestHealth(t *testing.T) {
	broken := false
	r := newRig(t, tune{config: func(c *Config) {
		c.Server.Ready = func(context.Context) error {
			if broken {
				return fmt.Errorf("the disk is full")
			}
			return nil
		}
	}})
	none := []string{"X-Session-API-Key", ""}
	r.do("GET", "/alive", "", none...).want(t, 200, `{"status":"ok"}`)
	r.do("GET", "/health", "", none...).want(t, 200, `"OK"`)
	r.do("GET", "/ready", "", none...).want(t, 200, `{"status":"ok"}`)
	info := decoded[map[string]json.RawMessage](t, r.do("GET", "/server_info", "", none...).want(t, 200, `"version":"test"`))
	for _, name := range []string{"uptime", "idle_time", "resources"} {
		if info[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	var used struct {
		CPU float64 `json:"cpu_percent"`
	}
	if err := json.Unmarshal(info["resources"], &used); err != nil || used.CPU < 0.001 { // since the handler was made, not since the year 1
		t.Errorf("%g%% busy: %v", used.CPU, err)
	}
	broken = true
	r.do("GET", "/ready", "", none...).want(t, http.StatusServiceUnavailable, "the disk is full")
	r.do("GET", "/alive", "", none...).want(t, 200)
}
