package gitgate

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Name is the host that git inside a sandbox asks.
const Name = "git.deckhand.internal"

// Site is a git host, in the one spelling that Origin gives it.
type Site struct {
	Scheme string // http or https
	Host   string // in lower case, with a port if it is not the scheme's own
}

// Origin is the site of an address. One with a path has none: a token belongs to
// a whole host.
func Origin(u *url.URL) (Site, bool) {
	s := Site{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}
	if s.Scheme != "http" && s.Scheme != "https" || u.User != nil || u.Opaque != "" || strings.Trim(u.Path, "/") != "" {
		return Site{}, false
	}
	if name := strings.ToLower(u.Hostname()); u.Port() == s.usual() || u.Port() == "" {
		if s.Host = name; strings.Contains(name, ":") {
			s.Host = "[" + name + "]"
		}
	}
	return s, s.Host != "" && strings.Trim(s.Host, hostLetters) == "" && s.Hostname() != Name
}

// hostLetters are those of names, addresses and ports.
const hostLetters = "abcdefghijklmnopqrstuvwxyz0123456789-_.:[]"

func (s Site) usual() string {
	if s.Scheme == "http" {
		return "80"
	}
	return "443"
}

// Hostname is the host without a port.
func (s Site) Hostname() string {
	return (&url.URL{Host: s.Host}).Hostname()
}

// Port is the port that is connected to.
func (s Site) Port() string {
	if port := (&url.URL{Host: s.Host}).Port(); port != "" {
		return port
	}
	return s.usual()
}

// String is how people write it.
func (s Site) String() string { return s.Scheme + "://" + s.Host }

// Gate is where the site begins inside a sandbox.
func (s Site) Gate() string { return "http://" + Name + "/" + s.Scheme + "/" + s.Host }

// spellings are the beginnings of addresses that mean the site. Those of ssh
// have no use for the port: it is another one there.
func (s Site) spellings() []string {
	host := s.Hostname()
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	list := []string{s.String() + "/"}
	if !strings.Contains(s.Host[len(host):], ":") {
		list = append(list, s.Scheme+"://"+net.JoinHostPort(s.Hostname(), s.usual())+"/")
	}
	return append(list, "git@"+host+":", "ssh://git@"+host+"/")
}
