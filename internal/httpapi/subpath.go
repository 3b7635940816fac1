package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// plainPath has one spelling only, so that it is found at the front of any request.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// PublicPath is the path of a public address, without a final slash, so "" at the
// root. A proxy may take it away from requests or leave it; both are understood,
// and therefore it cannot begin like a path of ours.
func PublicPath(public string) (string, error) {
	u, err := url.Parse(public)
	if err != nil {
		return "", err
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if !plainPath.MatchString(path) {
		return "", fmt.Errorf("the path %q may only contain letters, digits and -._~ between single slashes", path)
	}
	if path != "" && firstParts(table(), func(route) bool { return true })[firstPart(path)] {
		return "", fmt.Errorf("the path %q conflicts with a path of the server; choose another, such as /deckhand", path)
	}
	return path, nil
}

// firstPart is what stands between the first two slashes.
func firstPart(path string) string {
	part, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return part
}

// firstParts are the first parts of the routes' paths, and of those where only
// legacy clients look for something.
func firstParts(routes []route, counts func(route) bool) map[string]bool {
	out := map[string]bool{"socket.io": true, "feedback": true}
	for _, r := range routes {
		if counts(r) {
			out[firstPart(r.path)] = true
		}
	}
	return out
}

// oursAlone is false for routes beside which a front end has pages and files of its own.
func oursAlone(r route) bool { return !r.yields && r.id != "asset" }

// settlePublic takes the public address apart. It was checked by PublicPath.
func (d *Door) settlePublic() {
	u, err := url.Parse(d.PublicURL)
	if err != nil || u.Host == "" {
		return
	}
	d.origin = strings.ToLower(u.Scheme + "://" + u.Host)
	if port := u.Port(); port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" { // browsers leave it out
		d.origin = strings.TrimSuffix(d.origin, ":"+port)
	}
	d.prefix = strings.TrimRight(u.Path, "/")
	if err := d.csrf.AddTrustedOrigin(d.origin); err != nil {
		panic(err)
	}
}

// below takes the public address's path away from a request that still has it.
func (d *Door) below(r *http.Request) *http.Request {
	if d.prefix == "" || !strings.HasPrefix(r.URL.EscapedPath(), d.prefix+"/") {
		return r
	}
	out, u := *r, *r.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, d.prefix), strings.TrimPrefix(u.RawPath, d.prefix)
	out.URL = &u
	return &out
}

// atPrefix sends a browser from the public path to the same with a slash, below
// which our relative links lead to the right places.
func (d *Door) atPrefix(w http.ResponseWriter, r *http.Request) bool {
	if d.prefix == "" || r.URL.Path != d.prefix || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Location", d.prefix+"/")
	w.WriteHeader(http.StatusMovedPermanently)
	return true
}
