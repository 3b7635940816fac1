package nats

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// Address says where NATS servers are and how to log in.
type Address struct {
	hosts       []string
	tls         *tls.Config // nil for none, unless a server asks for it
	required    bool
	user        string
	pass, token string
	jwt         string
	seed        ed25519.PrivateKey
}

// form is what an address looks like, for messages. The address itself may have a password.
const form = "it looks like nats://USER:PASSWORD@HOST:4222, or tls://HOST:4222?creds=FILE&ca=FILE, with more servers of the cluster after commas"

// ParseAddress reads an address: nats:// or tls://, with a user and password or a token before the @. After a
// question mark come files: creds (a credentials file, or the seed of an nkey), ca (certificates to trust), and cert
// and key (those of this client). Commas separate the servers of a NATS cluster; how to log in stands in the first.
func ParseAddress(text string) (Address, error) {
	var a Address
	var first *url.URL
	for i, one := range strings.Split(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return a, errors.New("the NATS URL is not valid; " + form)
		}
		if i == 0 {
			first = u
			a.required = u.Scheme == "tls"
		} else if u.User != nil || u.RawQuery != "" {
			return a, errors.New("the NATS URL is not valid: only its first server has a user and options; " + form)
		}
		port := u.Port()
		if port == "" {
			port = "4222"
		}
		a.hosts = append(a.hosts, net.JoinHostPort(u.Hostname(), port))
	}
	if first.User != nil {
		pass, has := first.User.Password()
		if a.user, a.pass = first.User.Username(), pass; !has {
			a.user, a.token = "", first.User.Username()
		}
	}
	return a, a.options(first.Query())
}

// options reads the files that an address names.
func (a *Address) options(q url.Values) error {
	a.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	for name := range q {
		value := q.Get(name)
		var err error
		switch name {
		case "creds":
			err = a.credentials(value)
		case "ca":
			var pem []byte
			if pem, err = os.ReadFile(value); err == nil {
				a.tls.RootCAs, a.required = x509.NewCertPool(), true
				if !a.tls.RootCAs.AppendCertsFromPEM(pem) {
					err = fmt.Errorf("%s has no certificates in PEM form", value)
				}
			}
		case "cert":
			var pair tls.Certificate
			pair, err = tls.LoadX509KeyPair(value, q.Get("key"))
			a.tls.Certificates, a.required = []tls.Certificate{pair}, true
		case "key":
			if q.Get("cert") == "" {
				err = errors.New("it needs cert as well")
			}
		default:
			return errors.New("the NATS URL has an unknown option; " + form)
		}
		if err != nil {
			return fmt.Errorf("option %s of the NATS URL: %w", name, err)
		}
	}
	return nil
}

// credentials reads a file with a JWT and the seed of an nkey, or with the seed alone.
func (a *Address) credentials(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "eyJ"):
			a.jwt = line
		case strings.HasPrefix(line, "SU"):
			if a.seed, err = seed(line); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if a.seed == nil {
		return fmt.Errorf("%s has no seed of a user's nkey", file)
	}
	return nil
}

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// The first bytes of a user's seed and of a user's public key.
const (
	seedOfUser1, seedOfUser2 = 18<<3 | 20>>2, 20 << 6 & 0xff
	publicOfUser             = 20 << 3
)

// seed reads the seed of a user's nkey.
func seed(text string) (ed25519.PrivateKey, error) {
	b, err := letters.DecodeString(text)
	if err != nil || len(b) != 2+ed25519.SeedSize+2 || b[0] != seedOfUser1 || b[1] != seedOfUser2 || binary.LittleEndian.Uint16(b[len(b)-2:]) != checksum(b[:len(b)-2]) {
		return nil, errors.New("the seed of the nkey is damaged")
	}
	return ed25519.NewKeyFromSeed(b[2 : 2+ed25519.SeedSize]), nil
}

// publicKey is the text form of a user's public key.
func publicKey(k ed25519.PrivateKey) string {
	b := append([]byte{publicOfUser}, k.Public().(ed25519.PublicKey)...)
	return letters.EncodeToString(binary.LittleEndian.AppendUint16(b, checksum(b)))
}

// checksum is the CRC-16 that nkeys end with.
func checksum(b []byte) uint16 {
	var sum uint16
	for _, c := range b {
		sum ^= uint16(c) << 8
		for range 8 {
			if sum&0x8000 != 0 {
				sum = sum<<1 ^ 0x1021
			} else {
				sum <<= 1
			}
		}
	}
	return sum
}

// String is the address without how to log in.
func (a Address) String() string { return strings.Join(a.hosts, ",") }

// Secrets are what must not be logged.
func (a Address) Secrets() []string { return []string{a.pass, a.token, a.jwt} }

// open connects to one of the servers and logs in. said is the INFO message of the server.
func (a Address) open(ctx context.Context, server int, name string) (conn net.Conn, in *bufio.Reader, said info, err error) {
	host := a.hosts[server%len(a.hosts)]
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, nil, said, err
	}
	conn = raw
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			raw.Close()
		}
	}()
	if err = conn.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		return nil, nil, said, err
	}
	in = bufio.NewReaderSize(conn, 32<<10)
	line, err := readLine(in)
	if err != nil {
		return nil, nil, said, err
	}
	verb, rest, _ := strings.Cut(line, " ")
	if verb != "INFO" || json.Unmarshal([]byte(rest), &said) != nil {
		return nil, nil, said, fmt.Errorf("%s is not a NATS server", host)
	}
	if said.TLSRequired || a.required {
		config := a.tls.Clone()
		config.ServerName, _, _ = net.SplitHostPort(host)
		secured := tls.Client(conn, config)
		if err = secured.HandshakeContext(ctx); err != nil {
			return nil, nil, said, fmt.Errorf("TLS with the NATS server %s: %w", host, err)
		}
		conn, in = secured, bufio.NewReaderSize(secured, 32<<10)
	}
	h := hello{TLSRequired: said.TLSRequired || a.required, Name: name, Lang: "go", Version: "1", Protocol: 1, User: a.user, Pass: a.pass, Token: a.token, JWT: a.jwt}
	if a.seed != nil {
		h.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(a.seed, []byte(said.Nonce)))
		if a.jwt == "" {
			h.NKey = publicKey(a.seed)
		}
	}
	if err = greet(conn, in, h); err != nil {
		return nil, nil, said, err
	}
	return conn, in, said, conn.SetDeadline(time.Time{})
}
