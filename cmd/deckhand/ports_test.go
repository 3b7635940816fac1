package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/config"
	"deckhand/internal/httpapi/forward"
	"deckhand/internal/secret"
)

// webServer is a command that serves the workspace on port 8000, in the background.
func webServer(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("busybox"); err == nil {
		return "busybox httpd -p 127.0.0.1:8000 -h /workspace"
	}
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		return "(/usr/bin/python3 -u -m http.server -d /workspace 8000 2>&1 &) | head -n 1"
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("neither busybox nor python3 is here")
	}
	t.Skip("SKIPPED: neither busybox nor python3 is here to serve a page in the sandbox")
	return ""
}

// A page that is served in a real sandbox, which has a network of its own, is seen
// from outside, by the same address after a restart of the server too.
func TestPortOfASandbox(t *testing.T) {
	t.Parallel()
	page := webServer(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := serve(t, dir, withSandbox(t, "local")...)
	b.demo("scripted/demo")
	id := b.create("$ echo hello from inside > index.html; " + page + "; echo it is served")
	b.said(id, 0, "it is served")
	label := b.webHost(id, 8000)
	look := func(status int, text string) {
		t.Helper()
		if code, got, _ := b.raw("GET", "/index.html", "", "Host", label); code != status || !strings.Contains(got, text) {
			t.Errorf("%d %s, want %d with %q", code, got, status, text)
		}
	}
	look(http.StatusOK, "hello from inside")
	b.stop()

	b = serve(t, dir, withSandbox(t, "local")...)
	u, _ := url.Parse(b.base)
	label = strings.SplitN(label, ":", 2)[0] + ":" + u.Port()
	look(http.StatusOK, "hello from inside")
	if again := b.webHost(id, 8000); again != label {
		t.Errorf("after a restart the port is at %s, before at %s", again, label)
	}
	if code, text, _ := b.raw("POST", "/api/conversations/"+id+"/stop", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	b.until("the sandbox ends", func() bool {
		code, text, _ := b.raw("GET", "/index.html", "", "Host", label)
		return code == http.StatusBadGateway && strings.Contains(text, "is not running")
	})
	b.remove(id)
	look(http.StatusNotFound, "deleted")
}

// webHost is the name under which a port is served. No other is: the sandbox
// sees nothing of what listens on this machine.
func (b *box) webHost(id string, port int) string {
	b.t.Helper()
	code, text, _ := b.raw("GET", "/api/conversations/"+id+"/web-hosts", "")
	var got api.WebHosts
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != http.StatusOK || len(got.Hosts) != 1 {
		b.t.Fatalf("%d %s %v", code, text, err)
	}
	for at, p := range got.Hosts {
		if p != port {
			b.t.Fatalf("the sandbox listens on %d", p)
		}
		return strings.TrimPrefix(at, "http://")
	}
	return ""
}

func TestPortsDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		serve serveCmd
		want  forward.Forwarding
	}{
		{serveCmd{ListenFlags: config.ListenFlags{Addr: "127.0.0.1:3000"}}, forward.Forwarding{Domain: "localhost"}},
		{serveCmd{ListenFlags: config.ListenFlags{Addr: "[::1]:3000", PublicURL: "http://localhost:3000/deckhand"}}, forward.Forwarding{Domain: "localhost"}},
		{serveCmd{ListenFlags: config.ListenFlags{Addr: "127.0.0.1:3000", PublicURL: "https://deckhand.example.org"}}, forward.Forwarding{}},
		{serveCmd{ListenFlags: config.ListenFlags{Addr: "0.0.0.0:3000", BehindProxy: true}}, forward.Forwarding{}},
		{serveCmd{ListenFlags: config.ListenFlags{Addr: "0.0.0.0:3000", BehindProxy: true}, PortsDomain: "Ports.example.org."}, forward.Forwarding{Domain: "ports.example.org", Scheme: "https"}},
		{serveCmd{ListenFlags: config.ListenFlags{Addr: "0.0.0.0:3000"}, TLSFlags: config.TLSFlags{TLSCert: "c"}, PortsDomain: "ports.example.org"}, forward.Forwarding{Domain: "ports.example.org", Scheme: "https", Port: "3000"}},
		{serveCmd{ListenFlags: config.ListenFlags{Addr: "0.0.0.0:3000", BehindProxy: true}, PortsDomain: "ports.example.org:8443"}, forward.Forwarding{Domain: "ports.example.org", Scheme: "https", Port: "8443"}},
		{serveCmd{ListenFlags: config.ListenFlags{Addr: "127.0.0.1:3000", PublicURL: "http://deckhand.lan:81"}, PortsDomain: "ports.lan"}, forward.Forwarding{Domain: "ports.lan", Scheme: "http", Port: "81"}},
	} {
		dir := config.DataFlags{DataDir: t.TempDir()}
		d, err := openData(t.Context(), dir, access.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.db.Close()
		keyring, err := secret.OpenKeyring(t.Context(), dir.DataDir, "", d.db)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.serve.forwarding(t.Context(), d, keyring)
		if (got.Key == [32]byte{}) != (got.Domain == "") {
			t.Errorf("%+v: the key is not there when it is needed", c.serve)
		}
		again, _ := c.serve.forwarding(t.Context(), d, keyring)
		if again != got {
			t.Errorf("%+v: the key does not last", c.serve)
		}
		got.Key = [32]byte{}
		if err != nil || got != c.want {
			t.Errorf("%+v gives %+v, %v; want %+v", c.serve, got, err, c.want)
		}
	}
}

func TestPortsDomainIsChecked(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"ports.example.org": "", "ports.example.org:8443": "", "PORTS.example.org.": "", "ports": "",
		"https://ports.example.org": "host name", "*.example.org": "host name", "192.0.2.1": "host name", "ports example": "host name", "-x.org": "host name", "a..b": "host name",
		"ports.example.org:http": "host name", "ports.example.org:99999": "host name", strings.Repeat("a.", 100) + "org": "host name",
		"deckhand.example.org": "must differ", "Deckhand.example.org:444": "must differ",
	} {
		c := config.ListenFlags{Addr: "127.0.0.1:0", PublicURL: "https://deckhand.example.org"}
		if err := c.CheckPortsDomain(name); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), "--ports-domain") || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}
