package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/soak"
)

// A real Caddy in front, with the configuration of the documentation: pages, streams, WebSockets
// and uploads work, and no key is in its log.
func TestBehindCaddy(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "a real proxy")
	program, err := exec.LookPath("caddy")
	if err != nil {
		dockertest.Missing(t, "caddy is not installed; on Debian: apt-get install caddy")
	}
	behindProxy(t, func(front, behind string) (*syncBuffer, string) {
		dir := t.TempDir()
		host, port, _ := net.SplitHostPort(front)
		// Caddy signs a certificate for localhost itself.
		example := strings.NewReplacer("deckhand.example.org {", "localhost {", "127.0.0.1:3000", behind).Replace(proxyBlocks(t, "caddyfile", 1)[0])
		options := "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n\thttps_port " + port + "\n\tdefault_bind " + host + "\n}\n"
		config := filepath.Join(dir, "Caddyfile")
		if err := os.WriteFile(config, []byte(options+example), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "run", "--config", config, "--adapter", "caddyfile")
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
		said := runProxy(t, cmd, regexp.MustCompile("certificate obtained successfully"))
		return said, filepath.Join(dir, "caddy", "pki", "authorities", "local", "root.crt")
	})
}

// A real Traefik in front, with the configuration of the documentation.
func TestBehindTraefik(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "a real proxy")
	program, err := filepath.Abs("../../bin/traefik")
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		if program, err = exec.LookPath("traefik"); err != nil {
			t.Skip("SKIPPED: there is no Traefik; make proxy-test builds one, which takes ten minutes, and runs this test")
		}
	}
	behindProxy(t, func(front, behind string) (*syncBuffer, string) {
		dir := t.TempDir()
		static, dynamic := filepath.Join(dir, "traefik.yaml"), filepath.Join(dir, "deckhand.yaml")
		certificate, key := filepath.Join(dir, "deckhand.pem"), filepath.Join(dir, "deckhand.key")
		selfSigned(t, certificate, key)
		blocks := proxyBlocks(t, "yaml", 2)
		for path, text := range map[string]string{
			static: strings.NewReplacer(":443", front, "/etc/traefik/deckhand.yaml", dynamic).Replace(blocks[0]) + "log: {level: DEBUG}\nglobal: {checkNewVersion: false}\n",
			dynamic: strings.NewReplacer("deckhand.example.org", "localhost", "127.0.0.1:3000", behind).Replace(blocks[1]) +
				"tls:\n  certificates:\n    - {certFile: " + certificate + ", keyFile: " + key + "}\n",
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("sh", "-c", `exec "$0" --configFile="$1" >&2`, program, static)
		return runProxy(t, cmd, regexp.MustCompile("Adding route for localhost")), certificate
	})
}

// behindProxy does through a proxy what people do.
func behindProxy(t *testing.T, start func(front, behind string) (said *syncBuffer, certificate string)) {
	t.Helper()
	front, behind := freeAddress(t), freeAddress(t)
	b := serve(t, "", "--addr", behind, "--public-url", atLocalhost(front))
	said, certificate := start(front, behind)
	b.client.HTTP = trusting(t, certificate)
	until(t, "the proxy uses its route and its certificate", func() bool { // it says so a moment before
		got, err := b.client.HTTP.Get(atLocalhost(front) + "/alive")
		if err == nil {
			got.Body.Close()
		}
		return err == nil && got.StatusCode == http.StatusOK
	})
	behindAsBrowser(t, b, "")
	b.demo("scripted/demo")
	id := b.create("$ echo made > made.txt")
	defer (&person{box: b}).drop(id)
	behindAsClient(t, b, "", id)
	for _, transports := range []string{"polling", "websocket", "polling,websocket"} {
		behindAsSocket(t, atLocalhost(front), "", id, b.key, transports, certificate)
	}
	if strings.Contains(said.String(), b.key) {
		t.Error("the log of the proxy has the key")
	}
}
