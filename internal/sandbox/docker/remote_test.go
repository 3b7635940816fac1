package docker_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
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
	raw  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
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

// folder has a certificate: what DOCKER_CERT_PATH names, or that of an engine.
func (a *authority) folder(usage x509.ExtKeyUsage) string {
	a.t.Helper()
	dir := a.t.TempDir()
	certificate, key := a.issue(usage)
	for name, content := range map[string][]byte{"ca.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.raw}), "cert.pem": certificate, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return dir
}

// works starts a sandbox on an engine, nil for the shared one, at another address and uses it. The environment is for that address alone.
func works(t *testing.T, engine *dockertest.Own, host string, environment map[string]string) {
	t.Helper()
	r := newRig(t, func(o *docker.Options) {
		o.Runner = sandboxtest.Runner(t)
		if engine != nil {
			o.Host, o.Image = engine.Host, engine.BusyboxImage(t)
		}
	})
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

// A real engine that requires client certificates.
func TestEngineOverTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := "tcp://" + l.Addr().String()
	l.Close()
	a := newAuthority(t)
	own := a.folder(x509.ExtKeyUsageServerAuth)
	engine := dockertest.Start(t, "--host="+host, "--tlsverify", "--tlscacert="+own+"/ca.pem", "--tlscert="+own+"/cert.pem", "--tlskey="+own+"/key.pem")
	client, stranger := a.folder(x509.ExtKeyUsageClientAuth), newAuthority(t).folder(x509.ExtKeyUsageClientAuth)
	t.Run("certificates of the environment", func(t *testing.T) {
		works(t, engine, host, map[string]string{"DOCKER_CERT_PATH": client})
	})
	t.Run("certificates in the address", func(t *testing.T) {
		works(t, engine, host+"?certs="+client, map[string]string{"DOCKER_CERT_PATH": stranger})
	})

	t.Setenv("DOCKER_CERT_PATH", stranger)
	// An engine with a certificate of another authority is refused, also without DOCKER_TLS_VERIFY, and the engine refuses such clients.
	refused(t, host, "certificate signed by unknown authority")
	ca, err := os.ReadFile(filepath.Join(own, "ca.pem"))
	if err == nil {
		err = os.WriteFile(filepath.Join(stranger, "ca.pem"), ca, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused(t, host, "remote error: tls:")
}

func refused(t *testing.T, host, why string) {
	t.Helper()
	d, err := docker.New(docker.Options{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, wanted an error with %q", err, why)
	}
}

// A real SSH server and client; only the client's configuration is our own.
func TestEngineOverSSH(t *testing.T) {
	socket := strings.TrimPrefix(dockertest.Engine(t), "unix://")
	works(t, nil, "ssh://"+dockertest.SSH(t)+socket, nil)
}
