package egress

import "encoding/binary"

// verdict on the first bytes that a client sends through a tunnel.
type opening int

const (
	unfinished  opening = iota // not enough of them yet
	notTLS                     // something else
	broken                     // neither TLS nor anything else
	greeting                   // a whole ClientHello
	plainHTTP                  // the method of a request
	secureShell                // the identification of an SSH client
)

// maxHello is more than any client sends: today's largest have about 2 KB.
const maxHello = 64 << 10

const (
	recordHandshake  = 0x16
	messageHello     = 1
	extensionName    = 0
	nameOfHost       = 0
	recordHeader     = 5
	messageHeader    = 4
	maxRecord        = 1 << 14
	helloFixed       = 2 + 32 // version and random
	unrecognizedName = 112
)

// alert tells a TLS client that its server name is not served, so that it says
// so instead of complaining about a lost connection.
var alert = []byte{0x15, 3, 1, 0, 2, 2, unrecognizedName}

// parseOpening says what a client begins with. The name is that of a ClientHello.
func parseOpening(b []byte) (kind opening, name string) {
	if kind, name = parseHello(b); kind != notTLS {
		return kind, name
	}
	const banner = "SSH-2.0-"
	if n := min(len(b), len(banner)); string(b[:n]) == banner[:n] && n > len("SSH") {
		if n < len(banner) {
			return unfinished, ""
		}
		return secureShell, ""
	}
	for i, c := range b {
		switch {
		case i == maxMethod:
			return notTLS, ""
		case c == ' ' && i > 0:
			return plainHTTP, ""
		case c < 'A' || c > 'Z':
			return notTLS, ""
		}
	}
	return unfinished, ""
}

// parseHello looks for the name of the server that a client asks for in the
// first bytes it sends. A name of "" is none. It reads as much as it is given
// and never more: the bytes may come in any pieces, and the message may be
// spread over any number of records.
func parseHello(b []byte) (opening, string) {
	if len(b) == 0 {
		return unfinished, ""
	}
	if b[0] != recordHandshake { // the version beside it does not count: servers read any
		return notTLS, ""
	}
	var message []byte
	for len(b) > 0 {
		if b[0] != recordHandshake {
			return broken, ""
		}
		if len(b) < recordHeader {
			return unfinished, ""
		}
		size := int(binary.BigEndian.Uint16(b[3:]))
		if size == 0 || size > maxRecord {
			return broken, ""
		}
		body := b[recordHeader:]
		message = append(message, body[:min(size, len(body))]...)
		if len(message) > 0 && message[0] != messageHello {
			return broken, ""
		}
		if len(message) >= messageHeader {
			want := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
			if want > maxHello {
				return broken, ""
			}
			if len(message) >= messageHeader+want {
				return readHello(message[messageHeader : messageHeader+want])
			}
		}
		b = body[min(size, len(body)):]
	}
	return unfinished, ""
}

// readHello reads the body of a ClientHello.
func readHello(b []byte) (opening, string) {
	s := scan{rest: b}
	s.take(helloFixed)
	s.vector8()  // session
	s.vector16() // cipher suites
	s.vector8()  // compressions
	if s.bad {
		return broken, ""
	}
	if len(s.rest) == 0 { // extensions may be left out
		return greeting, ""
	}
	extensions := scan{rest: s.vector16()}
	if s.bad || len(s.rest) > 0 {
		return broken, ""
	}
	name, seen := "", false
	for len(extensions.rest) > 0 {
		kind := extensions.number16()
		body := extensions.vector16()
		if extensions.bad {
			return broken, ""
		}
		if kind != extensionName {
			continue
		}
		if seen { // servers differ in which of them they use
			return broken, ""
		}
		seen = true
		var ok bool
		if name, ok = serverName(body); !ok {
			return broken, ""
		}
	}
	return greeting, name
}

func serverName(b []byte) (name string, ok bool) {
	s := scan{rest: b}
	list := scan{rest: s.vector16()}
	if s.bad || len(s.rest) > 0 || len(list.rest) == 0 {
		return "", false
	}
	for len(list.rest) > 0 {
		kind := list.take(1)
		one := list.vector16()
		if list.bad {
			return "", false
		}
		if kind[0] != nameOfHost {
			continue
		}
		if name != "" || len(one) == 0 {
			return "", false
		}
		name = string(one)
	}
	return name, true
}

// scan reads the parts of a message. After a part that is not there, bad is set
// and everything is empty.
type scan struct {
	rest []byte
	bad  bool
}

func (s *scan) take(n int) []byte {
	if s.bad || len(s.rest) < n {
		s.bad, s.rest = true, nil
		return nil
	}
	part := s.rest[:n]
	s.rest = s.rest[n:]
	return part
}

func (s *scan) number16() uint16 {
	if b := s.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (s *scan) vector8() []byte {
	n := s.take(1)
	if n == nil {
		return nil
	}
	return s.take(int(n[0]))
}

func (s *scan) vector16() []byte { return s.take(int(s.number16())) }
