package docker_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/sandboxtest"
)

// authority issues certificates for an engine and its client.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
	raw  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	if a.raw, err = x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key); err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(a.raw); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(usage x509.ExtKeyUsage) (certificate, key []byte) {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage}}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	packed, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: packed})
}

// folder is what DOCKER_CERT_PATH names.
func (a *authority) folder() string {
	a.t.Helper()
	dir := a.t.TempDir()
	certificate, key := a.issue(x509.ExtKeyUsageClientAuth)
	for name, content := range map[string][]byte{"ca.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.raw}), "cert.pem": certificate, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return dir
}

// encrypted puts TLS in front of the engine. Clients need a certificate.
func (a *authority) encrypted(plain string) string {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.issue(x509.ExtKeyUsageServerAuth))
	if err != nil {
		a.t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", strings.TrimPrefix(plain, "tcp://"))
				if err != nil {
					return
				}
				defer out.Close()
				done := make(chan struct{})
				go func() { _, _ = io.Copy(out, in); _ = out.(*net.TCPConn).CloseWrite(); close(done) }()
				_, _ = io.Copy(in, out)
				_ = in.(*tls.Conn).CloseWrite()
				<-done
			}()
		}
	}()
	return "tcp://" + l.Addr().String()
}

// works starts a sandbox on the engine at another address and uses it. The environment is for that address alone.
func works(t *testing.T, host string, environment map[string]string) {
	t.Helper()
	r := newRig(t, func(o *docker.Options) { o.Runner = sandboxtest.Runner(t) })
	for name, value := range environment {
		t.Setenv(name, value)
	}
	r = r.in(t) // the first driver removes the sandbox
	r.options.Host = host
	r.Driver = r.second()
	box, h := r.open(sandbox.Spec{})
	r.want(box, "echo hi > f; cat f", "hi")
	box.Close()
	if _, err := r.Checkpoint(t.Context(), h); err != nil {
		t.Error(err)
	}
	r.want(r.attach(h), "cat f", "hi")
}

func TestEngineOverTLS(t *testing.T) {
	plain, a := forward(t), newAuthority(t)
	host := a.encrypted(plain)
	works(t, host, map[string]string{"DOCKER_CERT_PATH": a.folder()})

	// Engines and clients with certificates of another authority are refused, also without DOCKER_TLS_VERIFY.
	t.Setenv("DOCKER_CERT_PATH", newAuthority(t).folder())
	d, err := docker.New(docker.Options{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with another authority: %v", err)
	}
}

// The certificates in an address are used instead of those in the environment.
func TestEngineWithOwnCertificates(t *testing.T) {
	plain, a := forward(t), newAuthority(t)
	works(t, a.encrypted(plain)+"?certs="+a.folder(), map[string]string{"DOCKER_CERT_PATH": newAuthority(t).folder()})
}

func TestEngineOverSSH(t *testing.T) {
	host := dockertest.Engine(t)
	if _, err := exec.LookPath("docker"); err != nil {
		dockertest.Missing(t, "there is no docker client for docker system dial-stdio")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nwhile test \"$1\" != --; do shift; done; shift 2; DOCKER_HOST=" + host + " exec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	works(t, "ssh://me@engine.invalid", nil)
}
