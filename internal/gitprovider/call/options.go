package call

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"deckhand/internal/gitprovider"
)

// Options are the options of every adapter.
type Options struct {
	Client *http.Client // restricted by the server's outbound policy
	Token  string       // the stored token; "" for anonymous requests
	Host   string       // host[:port], with a scheme unless it is https; "" for the public host
	Name   string       // the provider's name in settings, for errors
}

// Site returns the base URL of the host. standard is the provider's public host, or "".
// The error is a *gitprovider.Error.
func (o Options) Site(standard string) (*url.URL, error) {
	host := o.Host
	if host == "" {
		host = standard
	}
	if host == "" {
		return nil, o.unusable("No host is stored for it. Store its token together with a host in the settings.")
	}
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, o.unusable("The stored host is not an address. Store it as host or host:port in the settings.")
	}
	u.Host = strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

func (o Options) unusable(message string) error {
	return &gitprovider.Error{Reason: gitprovider.Refused, Provider: o.Name, Host: o.Name, Message: message}
}

// Path joins and escapes the parts of a path, so that each part is exactly one segment.
func Path(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		switch part {
		case ".", "..": // must not be resolved
			b.WriteString(strings.ReplaceAll(part, ".", "%2E"))
		default:
			b.WriteString(url.PathEscape(part))
		}
	}
	return b.String()
}

// Segments is Path for a name whose slashes are separators.
func Segments(name string) string { return Path(strings.Split(strings.Trim(name, "/"), "/")...) }

// Pasted parses a URL that a user copied from the address bar or a clone button. It is
// not ok if the text is a search term.
func Pasted(text string) (address *url.URL, ok bool) {
	text = strings.TrimSpace(text)
	if at, path, scp := strings.Cut(text, ":"); scp && !strings.HasPrefix(path, "//") { // git@host:owner/name.git
		if user, host, found := strings.Cut(at, "@"); found && user != "" && !strings.Contains(at, "/") {
			text = "ssh://" + host + "/" + strings.TrimLeft(path, "/")
		}
	}
	if !strings.Contains(text, "://") {
		host, _, deep := strings.Cut(text, "/")
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !deep || !strings.Contains(strings.Trim(host, "."), ".") {
			return nil, false
		}
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
		return nil, false
	}
	switch u.Scheme {
	case "http", "https", "ssh", "git":
		u.User = nil
		return u, true
	}
	return nil, false
}

// Here reports whether a URL is on the caller's host. Ports are ignored, because ssh uses
// another one.
func (c *Caller) Here(address *url.URL) bool {
	return c.Site != nil && strings.EqualFold(strings.TrimPrefix(address.Hostname(), "www."), c.Site.Hostname())
}

// Fail returns an error of this provider.
func (c *Caller) Fail(reason gitprovider.Reason, detail string) *gitprovider.Error {
	return gitprovider.Failure(c.Provider, c.host(), reason, c.clean(detail))
}

func (c *Caller) host() string {
	if c.Site == nil {
		return c.Provider
	}
	return c.Site.Host
}
