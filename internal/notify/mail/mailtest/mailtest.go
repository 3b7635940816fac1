// Package mailtest is an SMTP server for tests: it speaks the protocol on a real connection, with
// STARTTLS or TLS and a login, and keeps what it accepts.
package mailtest

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/mail"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Mail is an accepted e-mail.
type Mail struct {
	From, To string
	// Secure is true if it came over TLS, and User who logged in.
	Secure bool
	User   string
	Raw    string
	Header mail.Header
	// Text is decoded.
	Text string
}

// Server is an SMTP server.
type Server struct {
	// Got has the accepted e-mails.
	Got chan Mail
	// Reply answers a recipient; "" accepts. Before is called when a message has arrived, before it
	// is accepted. Set them before the first connection.
	Reply  func(to string) string
	Before func(Mail)
	// Plain hides STARTTLS.
	Plain bool

	implicit bool
	config   *tls.Config
	pem      []byte
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	open     map[net.Conn]bool
}

// User and Password are the login.
const User, Password = "deckhand", "smtp-p@ss/word"

// New starts a server on this machine that ends with the test. With implicit, it speaks TLS from
// the first byte.
func New(t testing.TB, implicit bool) *Server {
	t.Helper()
	s := &Server{Got: make(chan Mail, 100), implicit: implicit, open: map[net.Conn]bool{}}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.config = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.wg.Go(s.serve)
	t.Cleanup(func() {
		s.listener.Close()
		s.mu.Lock()
		for c := range s.open {
			c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

// URL is what --smtp-url takes.
func (s *Server) URL(from string) string {
	u := url.URL{Scheme: "smtp", User: url.UserPassword(User, Password), Host: s.listener.Addr().String(), RawQuery: url.Values{"from": {from}}.Encode()}
	if s.implicit {
		u.Scheme = "smtps"
	}
	return u.String()
}

// Roots trust the server, and PEM is its certificate.
func (s *Server) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.pem)
	return pool
}

// PEM is the certificate of the server.
func (s *Server) PEM() []byte { return s.pem }

func (s *Server) serve() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[c] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			s.talk(c)
			s.mu.Lock()
			delete(s.open, c)
			s.mu.Unlock()
			c.Close()
		})
	}
}

// talk is one conversation. It ends when the client breaks the rules.
func (s *Server) talk(raw net.Conn) {
	conn, secure := raw, s.implicit
	if s.implicit {
		conn = tls.Server(raw, s.config)
	}
	r := textproto.NewReader(bufio.NewReader(conn))
	say := func(lines ...string) { _, _ = conn.Write([]byte(strings.Join(lines, "\r\n") + "\r\n")) }
	say("220 mail.test ESMTP")
	var m Mail
	user := ""
	for {
		line, err := r.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			if secure || s.Plain {
				say("250-mail.test", "250 AUTH PLAIN")
			} else {
				say("250-mail.test", "250 STARTTLS")
			}
		case "STARTTLS":
			say("220 go ahead")
			conn, secure = tls.Server(conn, s.config), true
			r = textproto.NewReader(bufio.NewReader(conn))
		case "AUTH":
			b, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			if parts := bytes.Split(b, []byte{0}); len(parts) != 3 || string(parts[1]) != User || string(parts[2]) != Password {
				say("535 5.7.8 wrong login")
				continue
			}
			user = User
			say("235 welcome")
		case "MAIL":
			m = Mail{From: address(rest), Secure: secure, User: user}
			say("250 ok")
		case "RCPT":
			m.To = address(rest)
			if s.Reply != nil {
				if no := s.Reply(m.To); no != "" {
					say(no)
					continue
				}
			}
			say("250 ok")
		case "DATA":
			say("354 go ahead")
			text, err := r.ReadDotBytes()
			if err != nil {
				return
			}
			m.read(text)
			if s.Before != nil {
				s.Before(m)
			}
			say("250 accepted")
			s.Got <- m
		case "QUIT":
			say("221 bye")
			return
		default:
			say("500 unknown command")
		}
	}
}

func address(rest string) string {
	_, text, _ := strings.Cut(rest, "<")
	text, _, _ = strings.Cut(text, ">")
	return text
}

// read decodes an e-mail.
func (m *Mail) read(text []byte) {
	m.Raw = string(text)
	parsed, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return
	}
	m.Header = parsed.Header
	var body bytes.Buffer
	_, _ = body.ReadFrom(base64.NewDecoder(base64.StdEncoding, parsed.Body))
	m.Text = body.String()
}
