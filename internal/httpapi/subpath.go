package httpapi

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"deckhand/internal/httpapi/rest"
)

// plainPath has one spelling only, so that it is found at the front of any request.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// PublicPath returns the path of a public URL, without a final slash, so "" at the root. A proxy
// may strip the path from requests or keep it; both work, so it must not begin like a path of
// this server.
func PublicPath(public string) (string, error) {
	u, err := url.Parse(public)
	if err != nil {
		return "", err
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if !plainPath.MatchString(path) {
		return "", fmt.Errorf("the path %q may only contain letters, digits and -._~ between single slashes", path)
	}
	if path != "" && firstParts(new(Handler).table(), func(rest.Route) bool { return true })[rest.FirstPart(path)] {
		return "", fmt.Errorf("the path %q conflicts with a path of the server; choose another, such as /deckhand", path)
	}
	return path, nil
}

// firstParts are the first parts of the routes' paths, and of those where only
// legacy clients look for something.
func firstParts(routes []rest.Route, counts func(rest.Route) bool) map[string]bool {
	out := map[string]bool{"socket.io": true, "feedback": true}
	for _, r := range routes {
		if counts(r) {
			out[rest.FirstPart(r.Path)] = true
		}
	}
	return out
}

// oursAlone is false for routes beside which a front end has pages and files of its own.
func oursAlone(r rest.Route) bool { return !r.Yields && r.ID != "asset" }
