package page

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
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
func (d *Handlers) serveLogin(w http.ResponseWriter, r *http.Request, c *rest.Call) error {
	if d.PlainLogin() {
		return d.WriteLogin(w, r, http.StatusOK)
	}
	return d.servePage(w, r, c)
}

// PlainLogin is true where the web page is not there to log in with.
func (d *Handlers) PlainLogin() bool { return d.FrontEnd || d.ui == nil }

// WriteLogin lets a person log in, at the login page's address or in place of what they
// asked for. A link on another site leads here even who is logged in, since browsers keep
// the cookie back then; the page finds out and goes where the link leads.
func (d *Handlers) WriteLogin(w http.ResponseWriter, r *http.Request, status int) error {
	site := r.Header.Get("Sec-Fetch-Site")
	astray := status != http.StatusOK && (site == "cross-site" || site == "same-site")
	switch {
	case d.PlainLogin():
		return writePage(w, status, render("login.html", map[string]any{"Root": rest.RootOf(r), "Astray": astray}))
	case astray:
		return d.writeUI(w, r, status, VisitorAstray)
	default:
		return d.writeUI(w, r, status, VisitorStranger)
	}
}

func (d *Handlers) serveDocs(w http.ResponseWriter, _ *http.Request, _ *rest.Call) error {
	return writePage(w, http.StatusOK, d.Docs())
}

// serveAsset gives the pages' style and script.
func (*Handlers) serveAsset(w http.ResponseWriter, r *http.Request, _ *rest.Call) error {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	name := r.PathValue("name")
	kind := kinds[path.Ext(name)]
	b, err := pageFiles.ReadFile("pages/" + name)
	if kind == "" || err != nil {
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "File not found.")
	}
	w.Header().Set("Content-Type", kind)
	_, err = w.Write(b)
	return err
}

// login trades a ticket or a key for a cookie that scripts cannot read and other sites cannot send.
func (d *Handlers) login(ctx context.Context, c *rest.Call, _ rest.None, in api.Login) (api.Me, error) {
	trade := d.Gate.Redeem
	proof, ok := in.Ticket.Get()
	if !ok {
		trade, proof = d.Gate.Login, in.Key.Value
	}
	cookie, who, err := trade(ctx, proof)
	if err != nil {
		if a := d.Gate.AllowFailure(c.HTTP.RemoteAddr); !a.OK {
			return api.Me{}, rest.TooMany(a, "Too many failed logins.")
		}
		return api.Me{}, err
	}
	d.Guard.SetCookie(c, cookie, access.CookieLife)
	return api.Me{User: who.User, Admin: who.Admin}, nil
}

func (d *Handlers) logout(_ context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.Accepted, error) {
	if cookie, err := d.Guard.LoginOf(c.HTTP); err == nil {
		d.Gate.Logout(cookie.Value)
	}
	d.Guard.SetCookie(c, "", -time.Second)
	return api.Accepted{Success: true}, nil
}
