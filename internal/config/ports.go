package config

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

var domainForm = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// CheckPortsDomain refuses what cannot have names below it. "" is none.
func (f ListenFlags) CheckPortsDomain(domain string) error {
	if domain == "" {
		return nil
	}
	name, port := SplitDomain(domain)
	if _, err := strconv.ParseUint(port, 10, 16); port != "" && err != nil || !domainForm.MatchString(name) || len(name) > 190 { // the name of a port takes 35 characters before it
		return errors.New("--ports-domain must be a host name with an optional port, such as ports.example.org or ports.example.org:8443")
	}
	for _, own := range f.Hosts() {
		if strings.EqualFold(strings.TrimSuffix(own, "."), name) {
			return errors.New("--ports-domain must differ from the server's host name; otherwise programs in a sandbox could set cookies for this server")
		}
	}
	return nil
}

// SplitDomain gives the name of a domain, and the port if one is given.
func SplitDomain(domain string) (name, port string) {
	name = strings.ToLower(strings.TrimSuffix(domain, "."))
	if host, at, err := net.SplitHostPort(name); err == nil {
		name, port = host, at
	}
	return name, port
}

// PublicPort is the port by which people reach the server, "" if it goes without saying.
func (f ListenFlags) PublicPort(public *url.URL) string {
	if f.PublicURL != "" {
		return public.Port()
	}
	if f.BehindProxy {
		return ""
	}
	_, port, _ := net.SplitHostPort(f.Addr)
	return port
}
