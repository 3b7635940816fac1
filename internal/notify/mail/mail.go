// Package mail sends short plain-text e-mails through one SMTP server.
package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"
)

// sendTime is the timeout for sending one e-mail.
const sendTime = 20 * time.Second

// Flags are the flags for e-mail.
type Flags struct {
	SMTPURL     string `name:"smtp-url" env:"DECKHAND_SMTP_URL" placeholder:"URL" help:"Send e-mail through this server: smtp://user:password@host:587?from=address with STARTTLS, or smtps:// with TLS on port 465. Default: no e-mail."`
	SMTPURLFile string `name:"smtp-url-file" env:"DECKHAND_SMTP_URL_FILE" placeholder:"FILE" help:"File with the SMTP URL, to keep the password out of the command line."`
}

// CheckMail checks the flags without connecting to the server.
func (f Flags) CheckMail() error {
	_, err := f.Open(func(...string) {})
	return err
}

// Open returns the server set by the flags; nil for none. The password is passed to redact.
func (f Flags) Open(redact func(...string)) (*Server, error) {
	text, flag := f.SMTPURL, "--smtp-url"
	if f.SMTPURLFile != "" {
		if text != "" {
			return nil, errors.New("--smtp-url and --smtp-url-file cannot be combined; use one of them")
		}
		b, err := os.ReadFile(f.SMTPURLFile)
		if err != nil {
			return nil, fmt.Errorf("--smtp-url-file: %w", err)
		}
		if text, flag = strings.TrimSpace(string(b)), "--smtp-url-file"; text == "" {
			return nil, fmt.Errorf("--smtp-url-file: %s is empty", f.SMTPURLFile)
		}
	}
	if text == "" {
		return nil, nil
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if s.password != "" {
		redact(s.password)
	}
	return s, nil
}

// Server sends e-mail through an SMTP server.
type Server struct {
	// Roots verify its certificate; nil for those of the system.
	Roots *x509.CertPool

	host, port     string
	user, password string
	from           *mail.Address
	// implicit is true for TLS from the first byte; otherwise STARTTLS is required, except on
	// this machine.
	implicit bool
}

// Parse reads an SMTP URL. Its errors do not contain the URL, which has a password.
func Parse(text string) (*Server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("must be smtp://user:password@host:587?from=address or smtps://…; escape special characters in the password, such as %40 for @")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil || len(q) != 1 || len(q["from"]) != 1 {
		return nil, errors.New("must have exactly one parameter, from: the sender's address, such as ?from=deckhand@example.org")
	}
	from, err := mail.ParseAddress(q.Get("from"))
	if err != nil || !plain(from.Address) {
		return nil, errors.New("the parameter from must be an e-mail address, such as deckhand@example.org")
	}
	s := &Server{host: u.Hostname(), port: u.Port(), user: u.User.Username(), from: from, implicit: u.Scheme == "smtps"}
	s.password, _ = u.User.Password()
	if (s.user == "") != (s.password == "") {
		return nil, errors.New("must have a user and a password, or neither")
	}
	if s.port == "" {
		s.port = "587"
		if s.implicit {
			s.port = "465"
		}
	}
	return s, nil
}

// From is the sender's address.
func (s *Server) From() string { return s.from.Address }

// Message is an e-mail. Control characters in it have no effect: they cannot end a header.
type Message struct {
	To, Subject, Text string
	// ID is the same when the message is sent again, so that mail systems can recognise it.
	ID   string
	Date time.Time
}

// Error says why an e-mail was not accepted. A permanent error is not retried.
type Error struct {
	Msg       string
	Permanent bool
}

func (e *Error) Error() string { return e.Msg }

// Send hands an e-mail to the server, and returns nil when the server has accepted it.
func (s *Server) Send(ctx context.Context, m Message) error {
	if !plain(m.To) {
		return &Error{Msg: "the address cannot be used", Permanent: true}
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(s.host, s.port))
	if err != nil {
		return &Error{Msg: "the mail server cannot be reached"}
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if s.implicit {
		conn = tls.Client(conn, s.tls())
	}
	return explain(s.talk(conn, m))
}

// talk runs the SMTP dialogue with the server.
func (s *Server) talk(conn net.Conn, m Message) error {
	c, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return err
	}
	defer c.Close()
	if !s.implicit {
		if ok, _ := c.Extension("STARTTLS"); ok {
			if err := c.StartTLS(s.tls()); err != nil {
				return err
			}
		} else if !s.local() {
			return &Error{Msg: "the mail server does not offer STARTTLS"}
		}
	}
	if s.user != "" {
		if err := c.Auth(smtp.PlainAuth("", s.user, s.password, s.host)); err != nil {
			// The operator must correct the password; until then, deliveries are retried.
			return &Error{Msg: "the mail server refused the login"}
		}
	}
	if err := c.Mail(s.from.Address); err != nil {
		return err
	}
	if err := c.Rcpt(m.To); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(s.compose(m)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the message is accepted already
	return nil
}

func (s *Server) tls() *tls.Config {
	return &tls.Config{ServerName: s.host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
}

// local reports whether the server is on this machine, so that no unencrypted traffic leaves it.
func (s *Server) local() bool {
	ip := net.ParseIP(s.host)
	return s.host == "localhost" || ip != nil && ip.IsLoopback()
}

// explain returns an error without the text of the server or the network, which may contain addresses.
func explain(err error) error {
	var own *Error
	var said *textproto.Error
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.As(err, &said):
		return &Error{Msg: fmt.Sprintf("the mail server responded with %d", said.Code), Permanent: said.Code >= 500}
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return &Error{Msg: "the certificate of the mail server is not trusted"}
	}
	return &Error{Msg: "the connection to the mail server was lost"}
}

// compose returns the text of an e-mail. Each value is encoded or stripped of control characters.
func (s *Server) compose(m Message) []byte {
	var b bytes.Buffer
	domain := s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:]
	for _, h := range [][2]string{
		{"From", s.from.String()}, {"To", (&mail.Address{Address: m.To}).String()}, {"Subject", header(m.Subject)},
		{"Date", m.Date.UTC().Format(time.RFC1123Z)}, {"Message-ID", "<" + token(m.ID) + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"}, {"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "base64"},
	} {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	b.WriteString("\r\n")
	text := base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(m.Text, "\n", "\r\n")))
	for ; len(text) > 76; text = text[76:] {
		b.WriteString(text[:76] + "\r\n")
	}
	b.WriteString(text + "\r\n")
	return b.Bytes()
}

// header encodes a text for a header, in lines that are short enough.
func header(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return strings.ReplaceAll(mime.BEncoding.Encode("utf-8", text), "?= =?", "?=\r\n =?")
}

// token keeps the characters that are allowed in a message ID.
func token(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)) {
			return r
		}
		return -1
	}, text)
}

// plain reports whether an address can be used in an SMTP command without escaping.
func plain(address string) bool {
	a, err := mail.ParseAddress(address)
	return err == nil && a.Address == address && len(address) <= 254 && !strings.ContainsFunc(address, func(r rune) bool {
		return r > 126 || unicode.IsControl(r) || unicode.IsSpace(r) || strings.ContainsRune(`<>"\,;:()[]`, r)
	})
}
