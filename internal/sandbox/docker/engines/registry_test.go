package engines_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
)

// startRegistry starts a real registry with TLS for the user me with the password secret, and returns its address. Engines trust every
// certificate on loopback.
func startRegistry(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("MISSING: docker-registry is not installed; Debian has it in: docker-registry")
		}
		t.Skip("SKIPPED: docker-registry is not installed; Debian has it in: docker-registry")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	packed, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	config := "version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %[1]s/data}}\nhttp: {addr: \"127.0.0.1:0\", tls: {certificate: %[1]s/cert.pem, key: %[1]s/key.pem}}\n" +
		"auth: {htpasswd: {realm: test, path: %[1]s/users}}\n"
	for name, content := range map[string][]byte{
		"cert.pem":   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		"key.pem":    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: packed}),
		"users":      []byte("me:$2a$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n"),
		"config.yml": fmt.Appendf(nil, config, dir),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	cmd := exec.Command(program, "serve", filepath.Join(dir, "config.yml"))
	out, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	rest := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-rest
		_ = cmd.Wait()
	})
	lines, said, address := bufio.NewScanner(out), "", ""
	for address == "" && lines.Scan() {
		said += lines.Text() + "\n"
		if _, after, ok := strings.Cut(lines.Text(), "listening on "); ok {
			address, _, _ = strings.Cut(after, ",")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out); close(rest) }()
	if address == "" {
		t.Fatalf("the registry does not start: %s", said)
	}
	return address
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// push puts the image of an engine into the registry under two names, and forgets the names.
func (r *rig) push(host, image string, names ...string) {
	t := r.t
	t.Helper()
	engine, err := client.New(client.WithHost(host))
	must(t, err)
	defer engine.Close()
	auth, err := json.Marshal(map[string]string{"username": "me", "password": "secret"})
	must(t, err)
	for _, name := range names {
		_, err = engine.ImageTag(t.Context(), client.ImageTagOptions{Source: image, Target: name})
		must(t, err)
		pushed, err := engine.ImagePush(t.Context(), name, client.ImagePushOptions{RegistryAuth: base64.URLEncoding.EncodeToString(auth)})
		must(t, err)
		must(t, pushed.Wait(t.Context()))
		_, err = engine.ImageRemove(t.Context(), name, client.ImageRemoveOptions{})
		must(t, err)
	}
}

// privateRegistry pulls an image of a registry with a password to each engine.
func (r *rig) privateRegistry() {
	t := r.t
	registry := startRegistry(t)
	first, second := registry+"/private/box:1", registry+"/private/box:2"
	r.push(r.own[0].Host, r.options.Image, first, second)
	r.options.Pull = "missing"
	s := r.open()
	login := func(password string) {
		dir := t.TempDir()
		content, err := json.Marshal(map[string]any{"auths": map[string]any{registry: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("me:" + password))}}})
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "config.json"), content, 0o600))
		t.Setenv("DOCKER_CONFIG", dir)
	}
	login("secret")
	used := map[string]bool{}
	for i := range r.own {
		h, _ := r.start(s, sandbox.Spec{ID: fmt.Sprintf("pulled%d", i), Image: first}, "true")
		used[docker.EngineOf(h)] = true
	}
	if len(used) != len(r.own) {
		t.Errorf("the image was only pulled to %v", used)
	}
	login("wrong")
	_, err := s.Start(t.Context(), sandbox.Spec{ID: "refused", Image: second}, nil)
	r.refused(err, "does not exist or needs a login")
	if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the password is in %q", err)
	}
	r.cleared(s)
}
