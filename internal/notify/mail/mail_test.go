package mail_test

import (
	"errors"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/notify/mail"
	"deckhand/internal/notify/mail/mailtest"
)

func open(t *testing.T, s *mailtest.Server) *mail.Server {
	t.Helper()
	m, err := mail.Parse(s.URL("Deckhand <deckhand@example.org>"))
	if err != nil {
		t.Fatal(err)
	}
	m.Roots = s.Roots()
	return m
}

func TestSendsOverTLSWithALogin(t *testing.T) {
	t.Parallel()
	for name, implicit := range map[string]bool{"smtp": false, "smtps": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mailtest.New(t, implicit)
			at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
			long := "Fertig: " + strings.Repeat("Ümläute ", 30)
			if err := open(t, s).Send(t.Context(), mail.Message{To: "ada@example.org", Subject: long, Text: "line\n.\nlast ✓\n", ID: "msg_1", Date: at}); err != nil {
				t.Fatal(err)
			}
			got := <-s.Got
			subject, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
			if err != nil || subject != strings.TrimSpace(long) || !got.Secure || got.User != mailtest.User || got.From != "deckhand@example.org" || got.To != "ada@example.org" {
				t.Errorf("got %+v, subject %q, %v", got, subject, err)
			}
			if got.Text != "line\r\n.\r\nlast ✓\r\n" || got.Header.Get("Message-Id") != "<msg_1@example.org>" || got.Header.Get("Auto-Submitted") != "auto-generated" {
				t.Errorf("got %q, header %v", got.Text, got.Header)
			}
			for line := range strings.SplitSeq(got.Raw, "\n") {
				if len(line) > 100 {
					t.Errorf("a line has %d characters", len(line))
				}
			}
		})
	}
}

// What a title or an ID contains cannot add a header, a recipient or a second message.
func TestHeadersCannotBeInjected(t *testing.T) {
	t.Parallel()
	s := mailtest.New(t, false)
	evil := "Done\r\nBcc: eve@example.org\r\n\r\nbody\r\n.\r\nMAIL FROM:<eve@example.org>"
	if err := open(t, s).Send(t.Context(), mail.Message{To: "ada@example.org", Subject: evil, Text: evil, ID: evil}); err != nil {
		t.Fatal(err)
	}
	got := <-s.Got
	if len(got.Header) != 9 || got.Header.Get("Bcc") != "" || got.Header.Get("Subject") != "Done Bcc: eve@example.org body . MAIL FROM:<eve@example.org>" {
		t.Errorf("the headers are %v", got.Header)
	}
	for _, to := range []string{"ada@example.org\r\nRCPT TO:<eve@example.org>", "<ada@example.org>", "ada@example.org>,<eve@example.org", "ada eve@example.org", "ada@example.org SIZE=1", "a\x00@example.org", ""} {
		refused := (*mail.Error)(nil)
		if err := open(t, s).Send(t.Context(), mail.Message{To: to, Subject: "x", ID: "x"}); !errors.As(err, &refused) || !refused.Permanent {
			t.Errorf("%q was sent to: %v", to, err)
		}
	}
	if len(s.Got) != 0 {
		t.Errorf("something else was sent: %+v", <-s.Got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare   func(*mailtest.Server, *mail.Server)
		want      string
		permanent bool
	}{
		"a mailbox that does not exist": {func(s *mailtest.Server, _ *mail.Server) {
			s.Reply = func(string) string { return "550 5.1.1 no such user ada@example.org" }
		}, "the mail server responded with 550", true},
		"a mailbox that is busy":      {func(s *mailtest.Server, _ *mail.Server) { s.Reply = func(string) string { return "451 later" } }, "the mail server responded with 451", false},
		"a certificate of a stranger": {func(_ *mailtest.Server, m *mail.Server) { m.Roots = mailtest.New(t, false).Roots() }, "the certificate of the mail server is not trusted", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := mailtest.New(t, false)
			m := open(t, s)
			c.prepare(s, m)
			refused := (*mail.Error)(nil)
			err := m.Send(t.Context(), mail.Message{To: "ada@example.org", Subject: "x", ID: "x"})
			if !errors.As(err, &refused) || refused.Msg != c.want || refused.Permanent != c.permanent {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"smtp://u:p@mail.example.org?from=a@example.org":             "",
		"smtps://mail.example.org:465?from=Deckhand+<a@example.org>": "",
		"http://mail.example.org?from=a@example.org":                 "must be smtp://",
		"smtp://u:pa%zz@mail.example.org?from=a@example.org":         "must be smtp://",
		"smtp://mail.example.org":                                    "exactly one parameter",
		"smtp://mail.example.org?from=nobody":                        "must be an e-mail address",
		"smtp://mail.example.org?from=a@b&tls=no":                    "exactly one parameter",
		"smtp://user@mail.example.org?from=a@example.org":            "a user and a password",
	} {
		_, err := mail.Parse(text)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pa%zz")) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("smtp://u:secret%2Fword@mail.example.org?from=a@example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var kept []string
	keep := func(values ...string) { kept = append(kept, values...) }
	if s, err := (mail.Flags{SMTPURLFile: file}).Open(keep); err != nil || s.From() != "a@example.org" || len(kept) != 1 || kept[0] != "secret/word" {
		t.Errorf("got %v, kept %v", err, kept)
	}
	if s, err := (mail.Flags{}).Open(keep); s != nil || err != nil {
		t.Errorf("no flags: %v, %v", s, err)
	}
	if _, err := (mail.Flags{SMTPURL: "smtp://h?from=a@b.c", SMTPURLFile: file}).Open(keep); err == nil || !strings.Contains(err.Error(), "use one of them") {
		t.Errorf("both flags: %v", err)
	}
}
