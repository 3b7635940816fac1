package call

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"deckhand/internal/gitprovider"
)

// Options are what every adapter is made with.
type Options struct {
	Client *http.Client // dials under the policy of the server
	Token  string       // as the user stored it; "" asks as nobody
	Host   string       // "" is the provider's own; else host[:port], with a scheme if it is not https
	Name   string       // the provider as in settings, for errors
}

// Site is the address of the host. Standard is the provider's own host, or ""
// if it has none. It fails with a *gitprovider.Error.
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

// Path joins the parts of a path and escapes each of them, so that a part is
// always one segment, whatever it holds.
func Path(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		switch part {
		case ".", "..": // never left for somebody to resolve
			b.WriteString(strings.ReplaceAll(part, ".", "%2E"))
		default:
			b.WriteString(url.PathEscape(part))
		}
	}
	return b.String()
}

// Segments is Path for a name with slashes in it that stay slashes.
func Segments(name string) string { return Path(strings.Split(strings.Trim(name, "/"), "/")...) }

// Pasted reads what a user copied from the address bar or a clone button. What
// is not an address, but a name to search for, is not ok.
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

// Here reports whether a pasted address is one at the caller's host. Ports do
// not count: ssh has another one than the API.
func (c *Caller) Here(address *url.URL) bool {
	return c.Site != nil && strings.EqualFold(strings.TrimPrefix(address.Hostname(), "www."), c.Site.Hostname())
}

// Fail makes the error for an answer.
func (c *Caller) Fail(reason gitprovider.Reason, detail string) *gitprovider.Error {
	return gitprovider.Failure(c.Provider, c.host(), reason, c.clean(detail))
}

func (c *Caller) host() string {
	if c.Site == nil {
		return c.Provider
	}
	return c.Site.Host
}
