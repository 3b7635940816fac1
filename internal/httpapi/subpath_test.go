package httpapi

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"deckhand/api"
)

func TestPublicPath(t *testing.T) {
	for address, want := range map[string]string{
		"https://x": "", "https://x/": "", "https://x/deckhand": "/deckhand", "https://x/deckhand/": "/deckhand", "https://x/a/b.c/~d_e-1": "/a/b.c/~d_e-1", "": "",
		"https://x/api": "!", "https://x/api/v2": "!", "https://x/socket.io": "!", "https://x/docs": "!", "https://x/conversations": "!", "https://x/assets/x": "!", "https://x/mcp/": "!", "https://x/ui": "!", "https://x/settings": "!", "https://x/feedback": "!",
		"https://x/a b": "!", "https://x/a%2fb": "!", "https://x/%64eckhand": "!", "https://x//a": "!", "https://x/a//b": "!", "https://x/../a": "!", "https://x/.a": "!", "https://x/ä": "!", "https://x/a;b": "!", "http://%zz": "!",
	} {
		got, err := PublicPath(address)
		if (err != nil) != (want == "!") || err == nil && got != want {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
}

// Requests come with the public path or without, as the proxy likes it.
func TestBelowAPath(t *testing.T) {
	const public = "https://host.example/team/deckhand"
	r := newRig(t, tune{config: func(c *Config) { c.Access.PublicURL, c.Access.Hosts = public+"/", []string{"host.example"} }})
	r.settle("ada")
	id := r.create(`{}`)
	for _, prefix := range []string{"", "/team/deckhand"} {
		r.do("GET", prefix+"/api/me", "").want(t, 200, `"ada"`)
		r.do("GET", prefix+"/alive", "").want(t, 200)
		r.do("GET", prefix+"/", "").want(t, 200, `<base href="./"`)
		r.do("GET", prefix+"/api/conversations/"+id+"/events", "").want(t, 200)
		r.do("GET", prefix+"/api/user/repository/a%2Fb/microagents", "").want(t, 401, `"`) // an escaped slash survives
		r.do("GET", prefix+"/nothing", "").want(t, 404)
		r.do("GET", prefix+"//api/me", "").want(t, 404)
		r.do("PUT", prefix+"/api/me", "").want(t, http.StatusMethodNotAllowed)
		c := decoded[api.Conversation](t, r.do("GET", prefix+"/api/conversations/"+id, "").want(t, 200))
		if c.URL == nil || *c.URL != "/team/deckhand/api/conversations/"+id {
			t.Errorf("url: %v", c.URL)
		}
	}
	for _, path := range []string{"/team", "/team/", "/team/deckhandx/alive", "/team/deckhand/team/deckhand/alive", "/Team/deckhand/alive", "/team%2fdeckhand/alive", "/%74eam/deckhand/alive"} {
		r.do("GET", path, "").want(t, 404)
	}
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if a := r.browse("GET", "/team/deckhand"); a.status != http.StatusMovedPermanently || a.header.Get("Location") != "/team/deckhand/" {
		t.Errorf("without a slash: %d %v", a.status, a.header)
	}
	r.do("POST", "/team/deckhand", "").want(t, 404)

	var doc struct{ Servers []struct{ URL string } }
	if err := json.Unmarshal(r.api.Spec(), &doc); err != nil || len(doc.Servers) != 1 || doc.Servers[0].URL != public {
		t.Errorf("servers of the document: %v, %v", doc.Servers, err)
	}
	for origin, want := range map[string]string{"": "Path=/;", r.base: "Path=/;", "https://host.example": "Path=/team/deckhand/;"} {
		a := r.do("POST", "/api/login", `{"key":"`+r.keys["ada"]+`"}`, "X-Session-API-Key", "", "Origin", origin).want(t, 200)
		cookie := a.header.Get("Set-Cookie") + ";"
		if !strings.Contains(cookie, want) || strings.Contains(cookie, "Secure;") != (origin == "https://host.example") {
			t.Errorf("login from %q: %s", origin, cookie)
		}
	}
}

// A proxy may put any path before ours without telling, so pages have relative links only.
func TestPagesHaveRelativeLinks(t *testing.T) {
	r := newRig(t)
	absolute := regexp.MustCompile(`(?:href|src|action)="/|["'(]/(?:api|login|docs|assets|conversations)\b`)
	for path, links := range map[string]string{"/": `<base href="./"`, "/docs": `href="./assets/deckhand/style.css"`, "/login": `<base href="./"`,
		"/conversations/c1": `<base href="../"`, "/conversations/c1/files": `<base href="../../"`, "/settings": `<base href="./"`, "/settings/keys": `<base href="../"`} {
		a := r.browse("GET", path, "X-Session-API-Key", r.keys["ada"]).want(t, 200, links)
		if path != "/docs" && absolute.MatchString(a.body) { // which names all paths
			t.Errorf("%s: %s", path, absolute.FindString(a.body))
		}
	}
	if a := r.do("GET", "/assets/deckhand/login.js", "").want(t, 200); absolute.MatchString(a.body) {
		t.Error(absolute.FindString(a.body))
	}
}
