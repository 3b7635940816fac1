package rest

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"deckhand/internal/access"
)

// Admission says which requests are let in, and on whose behalf.
type Admission struct {
	Gate *access.Gate
	// Unlimited is true when keys may ask as often as they like.
	Unlimited bool
	// Hosts are names a request may be addressed to, beside IP addresses and localhost.
	Hosts []string
	// Origins are foreign web origins that may call, e.g. https://tools.example.org.
	Origins []string
	// PublicURL is the address people use, if it was given: its origin is our own,
	// and requests may have its path before theirs.
	PublicURL string
}

// Guard checks where requests are addressed to and come from, and who sent them. It knows the
// server's own address, and gives and finds the cookies of browsers.
type Guard struct {
	gate           *access.Gate
	unlimited      bool
	logger         *slog.Logger
	Hosts, origins map[string]bool
	// Origin and prefix are the parts of the public address; empty if there is none.
	Origin, Prefix string
	csrf           *http.CrossOriginProtection
}

// NewGuard makes a Guard. PublicURL must be one that was checked.
func NewGuard(a Admission, logger *slog.Logger) *Guard {
	g := &Guard{gate: a.Gate, unlimited: a.Unlimited, logger: logger, Hosts: map[string]bool{"localhost": true}, origins: map[string]bool{},
		csrf: http.NewCrossOriginProtection()}
	for _, h := range a.Hosts {
		g.Hosts[CanonicalHost(h)] = true
	}
	for _, o := range a.Origins {
		g.origins[o] = true
	}
	g.settlePublic(a.PublicURL)
	return g
}

// settlePublic takes the public address apart. It was checked by PublicPath.
func (g *Guard) settlePublic(public string) {
	u, err := url.Parse(public)
	if err != nil || u.Host == "" {
		return
	}
	g.Origin = strings.ToLower(u.Scheme + "://" + u.Host)
	if port := u.Port(); port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" { // browsers leave it out
		g.Origin = strings.TrimSuffix(g.Origin, ":"+port)
	}
	g.Prefix = strings.TrimRight(u.Path, "/")
	if err := g.csrf.AddTrustedOrigin(g.Origin); err != nil {
		panic(err)
	}
}

// Below takes the public address's path away from a request that still has it.
func (g *Guard) Below(r *http.Request) *http.Request {
	if g.Prefix == "" || !strings.HasPrefix(r.URL.EscapedPath(), g.Prefix+"/") {
		return r
	}
	out, u := *r, *r.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, g.Prefix), strings.TrimPrefix(u.RawPath, g.Prefix)
	out.URL = &u
	return &out
}

// AtPrefix sends a browser from the public path to the same with a slash, below
// which our relative links lead to the right places.
func (g *Guard) AtPrefix(w http.ResponseWriter, r *http.Request) bool {
	if g.Prefix == "" || r.URL.Path != g.Prefix || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Location", g.Prefix+"/")
	w.WriteHeader(http.StatusMovedPermanently)
	return true
}

// SetCookie sets it for our own part of the site, if the page that asks is at the public address.
func (g *Guard) SetCookie(c *Call, value string, life time.Duration) {
	g.GiveCookie(c, value, life, g.Origin != "" && c.HTTP.Header.Get("Origin") == g.Origin)
}

// GiveCookie sets it, where it is known whether the browser is at the public address.
func (g *Guard) GiveCookie(c *Call, value string, life time.Duration, public bool) {
	cookie := http.Cookie{Name: CookieName, Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: overTLS(c.HTTP) || public && strings.HasPrefix(g.Origin, "https:")}
	if public {
		cookie.Path = g.Prefix + "/"
	}
	if cookie.Secure && g.Prefix == "" {
		cookie.Name = OwnPrefix + CookieName
	}
	c.Header.Add("Set-Cookie", cookie.String())
}

// OwnAddress is ours as the browser has it: the public one if there is one, else the one that was asked, whose host
// admit has checked.
func (g *Guard) OwnAddress(r *http.Request) string {
	if g.Origin != "" {
		return g.Origin + g.Prefix
	}
	scheme := "http"
	if overTLS(r) {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: r.Host}).String()
}

// Secure says whether the browser speaks TLS, to us or to the proxy in front.
func (g *Guard) Secure(r *http.Request) bool { return strings.HasPrefix(g.OwnAddress(r), "https:") }

func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}
