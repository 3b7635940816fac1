package httpapi

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
)

// Beside the web page there are a few small ones, made on the server.
//
//go:embed pages
var pageFiles embed.FS

var pageTemplates = template.Must(template.New("").Funcs(template.FuncMap{"lower": strings.ToLower}).ParseFS(pageFiles, "pages/*.html"))

// csp lets a page load only what this server gave it.
const csp = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func writePage(w http.ResponseWriter, status int, page []byte) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", csp)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, err := w.Write(page)
	return err
}

func render(name string, data any) []byte {
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, name, data); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// serveLogin is the page like all others; a front end from elsewhere has no login of its own.
func serveLogin(d *Door, w http.ResponseWriter, r *http.Request, c *call) error {
	if d.plainLogin() {
		return d.writeLogin(w, r, http.StatusOK)
	}
	return servePage(d, w, r, c)
}

// plainLogin is true where the web page is not there to log in with.
func (d *Door) plainLogin() bool { return d.FrontEnd != nil || d.ui == nil }

// writeLogin lets a person log in, at the login page's address or in place of what they
// asked for. A link on another site leads here even who is logged in, since browsers keep
// the cookie back then; the page finds out and goes where the link leads.
func (d *Door) writeLogin(w http.ResponseWriter, r *http.Request, status int) error {
	site := r.Header.Get("Sec-Fetch-Site")
	astray := status != http.StatusOK && (site == "cross-site" || site == "same-site")
	switch {
	case d.plainLogin():
		return writePage(w, status, render("login.html", map[string]any{"Root": rootOf(r), "Astray": astray}))
	case astray:
		return d.writeUI(w, r, status, visitorAstray)
	default:
		return d.writeUI(w, r, status, visitorStranger)
	}
}

// wantsPage is true for a browser that shows what it gets to a person.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// rootOf is the way from a page back to the root. All links are relative, because
// a proxy may have put a path before ours that we do not know.
func rootOf(r *http.Request) string {
	if n := strings.Count(r.URL.EscapedPath(), "/"); n > 1 {
		return strings.Repeat("../", n-1)
	}
	return "./"
}

func serveDocs(d *Door, w http.ResponseWriter, _ *http.Request, _ *call) error {
	return writePage(w, http.StatusOK, d.page())
}

// serveAsset gives the pages' style and script.
func serveAsset(_ *Door, w http.ResponseWriter, r *http.Request, _ *call) error {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	name := r.PathValue("name")
	kind := kinds[path.Ext(name)]
	b, err := pageFiles.ReadFile("pages/" + name)
	if kind == "" || err != nil {
		return fail(http.StatusNotFound, api.CodeNotFound, "File not found.")
	}
	w.Header().Set("Content-Type", kind)
	_, err = w.Write(b)
	return err
}

// login trades a ticket or a key for a cookie that scripts cannot read and other sites cannot send.
func login(d *Door, ctx context.Context, c *call, _ none, in api.Login) (api.Me, error) {
	trade := d.Gate.Redeem
	proof, ok := in.Ticket.Get()
	if !ok {
		trade, proof = d.Gate.Login, in.Key.Value
	}
	cookie, who, err := trade(ctx, proof)
	if err != nil {
		if a := d.Gate.AllowFailure(c.http.RemoteAddr); !a.OK {
			return api.Me{}, tooMany(a, "Too many failed logins.")
		}
		return api.Me{}, err
	}
	d.setCookie(c, cookie, access.CookieLife)
	return api.Me{User: who.User, Admin: who.Admin}, nil
}

func logout(d *Door, _ context.Context, c *call, _ none, _ none) (api.Accepted, error) {
	if cookie, err := d.loginOf(c.http); err == nil {
		d.Gate.Logout(cookie.Value)
	}
	d.setCookie(c, "", -time.Second)
	return api.Accepted{Success: true}, nil
}

// setCookie sets it for our own part of the site, if the page that asks is at the public address.
func (d *Door) setCookie(c *call, value string, life time.Duration) {
	d.giveCookie(c, value, life, d.origin != "" && c.http.Header.Get("Origin") == d.origin)
}

// giveCookie sets it, where it is known whether the browser is at the public address.
func (d *Door) giveCookie(c *call, value string, life time.Duration, public bool) {
	cookie := http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: overTLS(c.http) || public && strings.HasPrefix(d.origin, "https:")}
	if public {
		cookie.Path = d.prefix + "/"
	}
	if cookie.Secure && d.prefix == "" {
		cookie.Name = ownPrefix + cookieName
	}
	c.header.Add("Set-Cookie", cookie.String())
}

func pretty(b []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return b
	}
	out.WriteByte('\n')
	return out.Bytes()
}
