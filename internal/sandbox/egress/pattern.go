package egress

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

type kind int

const (
	exact   kind = iota // example.org
	below               // *.example.org
	both                // .example.org
	network             // an address or a range
)

// pattern is one item of an allowlist. It is comparable: two that are equal
// mean the same.
type pattern struct {
	kind   kind
	name   string
	prefix netip.Prefix
	port   uint16 // 0: the usual ones
}

// usualPort says whether a pattern without a port allows it.
func usualPort(port uint16) bool { return port == 80 || port == 443 }

func parsePattern(text string) (pattern, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return pattern{}, errors.New("the pattern is empty")
	case strings.Contains(text, "://"):
		return pattern{}, errors.New("write the host only, without the scheme and the path")
	case text == "*":
		return pattern{}, errors.New(`to allow every host, use the mode "open"`)
	}
	hostText, port, err := cutPort(text)
	if err != nil {
		return pattern{}, err
	}
	if strings.Contains(hostText, "/") {
		prefix, err := parseRange(hostText)
		return pattern{kind: network, prefix: prefix, port: port}, err
	}
	p := pattern{port: port}
	if rest, ok := strings.CutPrefix(hostText, "*."); ok {
		p.kind, hostText = below, rest
	} else if rest, ok := strings.CutPrefix(hostText, "."); ok {
		p.kind, hostText = both, rest
	}
	if strings.Contains(hostText, "*") {
		return pattern{}, errors.New(`the only wildcard is "*." at the beginning, for all hosts below a name`)
	}
	h, err := parseHost(hostText)
	switch {
	case err != nil:
		return pattern{}, err
	case h.addr.IsValid() && p.kind != exact:
		return pattern{}, errors.New("an address has nothing below it; write a range as 192.0.2.0/24")
	case h.addr.IsValid():
		addr := h.addr.Unmap()
		p.kind, p.prefix = network, netip.PrefixFrom(addr, addr.BitLen())
	default:
		p.name = h.name
	}
	return p, nil
}

// cutPort takes a port off the end. An IPv6 address or range that has one is in brackets.
func cutPort(text string) (rest string, port uint16, err error) {
	rest, portText := text, ""
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, after, closed := strings.Cut(inner, "]")
		if !closed || (after != "" && after[0] != ':') || !strings.Contains(inner, ":") {
			return "", 0, errors.New("brackets are for IPv6 addresses, as in [2001:db8::1]:8080")
		}
		if rest = inner; after == "" {
			return rest, 0, nil
		}
		portText = after[1:]
	} else if strings.Count(text, ":") != 1 {
		return rest, 0, nil
	} else {
		rest, portText, _ = strings.Cut(text, ":")
	}
	port, err = parsePort(portText)
	return rest, port, err
}

// parsePort reads nothing but digits: others might read "+80" or "0080" differently.
func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' {
		return 0, errors.New("the port must be a number from 1 to 65535")
	}
	return uint16(n), nil
}

func parseRange(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, errors.New("write the host only, without a path, or a range as 192.0.2.0/24")
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, errors.New("write the range in its IPv4 form")
	case prefix != prefix.Masked():
		return netip.Prefix{}, fmt.Errorf("the range begins at %s", prefix.Masked())
	}
	return prefix, nil
}

// String is the spelling that parsePattern reads back.
func (p pattern) String() string {
	var s string
	switch p.kind {
	case exact:
		s = p.name
	case below:
		s = "*." + p.name
	case both:
		s = "." + p.name
	case network:
		if s = p.prefix.String(); p.prefix.IsSingleIP() {
			s = p.prefix.Addr().String()
		}
		if p.port != 0 && p.prefix.Addr().Is6() {
			s = "[" + s + "]"
		}
	}
	if p.port != 0 {
		s += ":" + strconv.Itoa(int(p.port))
	}
	return s
}

func (p pattern) matches(h host, port uint16) bool {
	if p.port != port && (p.port != 0 || !usualPort(port)) {
		return false
	}
	switch p.kind {
	case exact:
		return h.name == p.name
	case below:
		return strings.HasSuffix(h.name, "."+p.name)
	case both:
		return h.name == p.name || strings.HasSuffix(h.name, "."+p.name)
	}
	return h.addr.IsValid() && p.prefix.Contains(h.addr.Unmap().WithZone(""))
}

// common adds to list what two patterns both allow, if p is not above o.
func (p pattern) common(o pattern, list []pattern) []pattern {
	c := pattern{port: max(p.port, o.port)}
	if p.port != o.port && (min(p.port, o.port) != 0 || !usualPort(c.port)) {
		return list
	}
	switch {
	case (p.kind == network) != (o.kind == network):
		return list
	case p.kind == network && !p.prefix.Overlaps(o.prefix):
		return list
	case p.kind == network:
		if c.kind, c.prefix = network, p.prefix; o.prefix.Bits() > p.prefix.Bits() {
			c.prefix = o.prefix
		}
	case p.name != o.name: // o is above p: it allows all of p or nothing
		if o.kind == exact {
			return list
		}
		c.kind, c.name = p.kind, p.name
	case p.kind == o.kind:
		c.kind, c.name = p.kind, p.name
	case p.kind == both:
		c.kind, c.name = o.kind, o.name
	case o.kind == both:
		c.kind, c.name = p.kind, p.name
	default: // the name itself, and only what is below it
		return list
	}
	return append(list, c)
}

// ancestry is a name and the names above it.
func ancestry(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(name) {
			_, above, ok := strings.Cut(name, ".")
			if !ok {
				return
			}
			name = above
		}
	}
}

// names turns an international name into the form that is looked up. It does
// not judge it: parseHost does.
var names = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

// parseHost gives a host its one spelling: an address as netip prints it, a
// name in lower case and xn-- form without the final dot.
func parseHost(text string) (host, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		if addr.Zone() != "" {
			return host{}, errors.New("an address with a zone means something else on every machine")
		}
		return host{addr: addr}, nil
	}
	name := strings.TrimSuffix(text, ".")
	if !plain(name) {
		ascii, err := names.ToASCII(name)
		if err != nil || !utf8.ValidString(name) {
			return host{}, errors.New("this is not a host name")
		}
		name = strings.TrimSuffix(ascii, ".")
	}
	name = strings.ToLower(name)
	if len(name) > 253 {
		return host{}, errors.New("a host name has at most 253 characters")
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) < 1 || len(label) > 63 || strings.ContainsFunc(label, odd) {
			return host{}, errors.New("this is neither an address nor a host name")
		}
	}
	// No top-level domain starts with a digit. This is an address in a spelling
	// that others read differently than we do.
	if last := name[strings.LastIndexByte(name, '.')+1]; last >= '0' && last <= '9' {
		return host{}, errors.New("write the address in full, as four decimal numbers without leading zeros")
	}
	return host{name: name}, nil
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func odd(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// with is the host and a port, as they are dialled.
func (h host) with(port uint16) string {
	return net.JoinHostPort(h.String(), strconv.Itoa(int(port)))
}
