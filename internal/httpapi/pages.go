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
	"deckhand/internal/session"
)

// The pages are small, made on the server and without anything from elsewhere.
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

func serveLogin(_ *Door, w http.ResponseWriter, r *http.Request, _ *call) error {
	return writeLogin(w, r, http.StatusOK)
}

// writeLogin is the login page, or stands in for another one. A link on another
// site leads here even who is logged in, since browsers keep the cookie back then;
// the page finds out and goes where the link leads.
func writeLogin(w http.ResponseWriter, r *http.Request, status int) error {
	site := r.Header.Get("Sec-Fetch-Site")
	return writePage(w, status, render("login.html", map[string]any{"Root": rootOf(r), "Astray": status != http.StatusOK && (site == "cross-site" || site == "same-site")}))
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
		return fail(http.StatusNotFound, api.CodeNotFound, "There is no such file.")
	}
	w.Header().Set("Content-Type", kind)
	_, err = w.Write(b)
	return err
}

// serveHome shows what is there: conversations, and where to read on.
func serveHome(d *Door, w http.ResponseWriter, r *http.Request, c *call) error {
	rows, err := d.Index.Rows(r.Context(), session.Query{Owner: c.who.User, Limit: 20})
	if err != nil {
		return err
	}
	return d.writeHome(w, r, c, rows...)
}

// writeHome shows conversations in a table.
func (d *Door) writeHome(w http.ResponseWriter, r *http.Request, c *call, rows ...session.Row) error {
	type item struct {
		ID, Title, Status, Agent, Reason, Updated string
		Requests                                  []link
	}
	var items []item
	for _, row := range rows {
		it := item{string(row.ID), row.Title, string(row.Status), string(row.Agent), row.Reason, row.UpdatedAt.Format(time.DateTime + " MST"), nil}
		for _, q := range row.Requests {
			it.Requests = append(it.Requests, link{q.Name(), q.URL})
		}
		items = append(items, it)
	}
	return writePage(w, http.StatusOK, render("home.html", map[string]any{"Root": rootOf(r), "User": c.who.User, "Version": d.Version, "Items": items}))
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
	if cookie, err := c.http.Cookie(cookieName); err == nil {
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
