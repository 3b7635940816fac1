package main

import (
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
	behindProxy(t, func(front, behind string) *syncBuffer {
		dir := t.TempDir()
		example := strings.NewReplacer("deckhand.example.org {", "http://"+front+" {", "127.0.0.1:3000", behind).Replace(proxyBlocks(t, "caddyfile", 1)[0])
		config := filepath.Join(dir, "Caddyfile")
		if err := os.WriteFile(config, []byte("{\n\tadmin off\n\tauto_https off\n}\n"+example), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "run", "--config", config, "--adapter", "caddyfile")
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
		return runProxy(t, cmd, regexp.MustCompile("serving initial configuration"))
	})
}

// behindProxy does through a proxy what people do.
func behindProxy(t *testing.T, start func(front, behind string) *syncBuffer) {
	t.Helper()
	front, behind := freeAddress(t), freeAddress(t)
	b := serve(t, "", "--addr", behind, "--public-url", "http://"+front)
	said := start(front, behind)
	behindAsBrowser(t, b, "")
	b.demo("scripted/demo")
	id := b.create("$ echo made > made.txt")
	defer (&person{box: b}).drop(id)
	behindAsClient(t, b, "", id)
	for _, transports := range []string{"polling", "websocket", "polling,websocket"} {
		behindAsSocket(t, "http://"+front, "", id, b.key, transports)
	}
	if strings.Contains(said.String(), b.key) {
		t.Error("the log of the proxy has the key")
	}
}
