package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Mode is what a policy begins with.
type Mode string

// The modes.
const (
	// Open allows everything but port 25: a sandbox that sends mail to the world's
	// mail servers is never wanted, and ruins the name of the machine it runs on.
	Open Mode = "open"
	// Allowlist allows what is listed.
	Allowlist Mode = "allowlist"
	// Off allows nothing.
	Off Mode = "off"
)

// Policy limits the hosts that a sandbox may reach. No policy opens the way to addresses that
// are not public: see Config.AllowPrivate. The zero value is not valid and allows nothing.
type Policy struct {
	Mode Mode `json:"mode"`
	// Allow is for the mode Allowlist; empty, it allows nothing. Each is one of
	//
	//	example.org      this host
	//	*.example.org    the hosts below it, not itself
	//	.example.org     both
	//	192.0.2.7        this address, if it is asked for as an address
	//	192.0.2.0/24     such an address in this range
	//
	// with an optional port, as in example.org:8080 or [2001:db8::1]:8080 or
	// [2001:db8::/32]:8080; without one it means the ports 80 and 443.
	Allow []string `json:"allow,omitempty"`
}

// mailPort is what Open does not allow.
const mailPort = 25

// maxAllow keeps a policy small enough to be asked at every request.
const maxAllow = 1000

// ParsePolicy reads a policy and gives every pattern its one spelling. Patterns
// beside another mode than Allowlist are checked and kept: they do nothing, and
// are there again when the mode changes back.
func ParsePolicy(mode string, allow []string) (Policy, error) {
	p := Policy{Mode: Mode(mode)}
	if err := p.Mode.check(); err != nil {
		return Policy{}, err
	}
	if len(allow) > maxAllow {
		return Policy{}, fmt.Errorf("the allowlist has %d patterns, at most %d are allowed", len(allow), maxAllow)
	}
	for _, text := range allow {
		pt, err := parsePattern(text)
		if err != nil {
			return Policy{}, fmt.Errorf("allowlist: %.100q: %w", text, err)
		}
		if s := pt.String(); !slices.Contains(p.Allow, s) {
			p.Allow = append(p.Allow, s)
		}
	}
	return p, nil
}

// Check says what is wrong with the policy.
func (p Policy) Check() error {
	_, err := ParsePolicy(string(p.Mode), p.Allow)
	return err
}

func (m Mode) check() error {
	switch m {
	case Open, Allowlist, Off:
		return nil
	case "":
		return errors.New(`the egress policy has no mode; it must be "open", "allowlist" or "off"`)
	}
	return fmt.Errorf(`the egress policy cannot be %.40q; it must be "open", "allowlist" or "off"`, string(m))
}

// Stricter is the policy that allows what both allow: the server's and the
// conversation's. A policy that is not valid allows nothing, and so does
// whatever it is combined with. With long lists it takes milliseconds: combine
// when one of them changes, not at every request.
func Stricter(a, b Policy) Policy {
	ra, err := a.compile()
	if err != nil {
		return Policy{Mode: Off}
	}
	rb, err := b.compile()
	if err != nil {
		return Policy{Mode: Off}
	}
	switch {
	case ra.mode == Off || rb.mode == Off:
		return Policy{Mode: Off}
	case ra.mode == Open && rb.mode == Open:
		return Policy{Mode: Open}
	case ra.mode == Open:
		return rb.withoutMail()
	case rb.mode == Open:
		return ra.withoutMail()
	}
	return ra.intersect(rb)
}

// rules is a policy that can be asked quickly.
type rules struct {
	mode  Mode
	list  []pattern
	names map[string][]pattern // by name, without the wildcard
	nets  []pattern
}

func (p Policy) compile() (*rules, error) {
	if err := p.Mode.check(); err != nil {
		return nil, err
	}
	r := &rules{mode: p.Mode, names: map[string][]pattern{}}
	if p.Mode != Allowlist {
		return r, nil
	}
	for _, text := range p.Allow {
		pt, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("allowlist: %.100q: %w", text, err)
		}
		r.list = append(r.list, pt)
		if pt.kind == network {
			r.nets = append(r.nets, pt)
		} else {
			r.names[pt.name] = append(r.names[pt.name], pt)
		}
	}
	return r, nil
}

// refuses says why a host is not allowed, "" if it is.
func (r *rules) refuses(h host, port uint16) string {
	switch {
	case r.mode == Off:
		return `egress policy "off" allows nothing outside the sandbox`
	case r.mode == Open && port == mailPort:
		return fmt.Sprintf(`egress policy "open" does not allow port %d, which is for mail between servers`, mailPort)
	case r.mode == Open:
		return ""
	case r.lists(h, port):
		return ""
	}
	at := h.String()
	if !usualPort(port) {
		at = h.with(port)
	}
	return fmt.Sprintf(`egress policy "allowlist" does not allow %s; add it to the allowed hosts to use it`, at)
}

func (r *rules) lists(h host, port uint16) bool {
	return r.has(h, func(p pattern) bool { return p.matches(h, port) })
}

// explicit says whether the list has the port of a host beside its name, and it is
// none of the web's.
func (r *rules) explicit(h host, port uint16) bool {
	return !usualPort(port) && r.has(h, func(p pattern) bool { return p.port == port && p.matches(h, port) })
}

func (r *rules) has(h host, matches func(pattern) bool) bool {
	if h.addr.IsValid() {
		return slices.ContainsFunc(r.nets, matches)
	}
	for name := range ancestry(h.name) {
		if slices.ContainsFunc(r.names[name], matches) {
			return true
		}
	}
	return false
}

func (r *rules) withoutMail() Policy {
	p := Policy{Mode: Allowlist}
	for _, pt := range r.list {
		if pt.port != mailPort {
			p.Allow = append(p.Allow, pt.String())
		}
	}
	return p
}

// intersect finds what both lists allow. Two patterns for names have something
// in common only if the name of one is that of the other or above it, so it is
// enough to look upwards from each.
func (r *rules) intersect(o *rules) Policy {
	var shared []pattern
	upwards := func(from, to *rules) {
		for _, pt := range from.list {
			if pt.kind == network {
				continue
			}
			for name := range ancestry(pt.name) {
				for _, other := range to.names[name] {
					shared = pt.common(other, shared)
				}
			}
		}
	}
	upwards(r, o)
	upwards(o, r)
	for _, a := range r.nets {
		for _, b := range o.nets {
			shared = a.common(b, shared)
		}
	}
	p := Policy{Mode: Allowlist}
	seen := map[pattern]bool{}
	for _, pt := range shared {
		if !seen[pt] {
			seen[pt] = true
			p.Allow = append(p.Allow, pt.String())
		}
	}
	return p
}

// host is the destination of a request, in its canonical spelling: a name, or an address.
type host struct {
	name string
	addr netip.Addr
}

func (h host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}
