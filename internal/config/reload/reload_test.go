package reload

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"

	"deckhand/internal/config"
	"deckhand/internal/llm/catalogue"
)

// New connections get the renewed certificate, and a certificate that cannot be read changes nothing.
func TestCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flags := config.TLSFlags{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem")}
	values := Values{LogLevel: "info", TLS: flags}
	r := &Reloader{Read: func() (Values, error) { return values, nil }, Level: &slog.LevelVar{}, Catalogue: catalogue.New(nil), Log: slog.New(slog.DiscardHandler)}
	writePair(t, flags, 1)
	if err := r.Begin(); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", r.TLS())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			_ = c.(*tls.Conn).HandshakeContext(t.Context())
			c.Close()
		}
	}()
	serves := func(want int64) {
		t.Helper()
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != want {
			t.Errorf("certificate %d is served, wanted %d", got, want)
		}
	}
	serves(1)
	writePair(t, flags, 2)
	serves(1)
	if said, err := r.Reload(); err != nil || said != "Reloaded: certificate." {
		t.Errorf("said %q, %v", said, err)
	}
	serves(2)
	if said, err := r.Reload(); err != nil || said != "Reloaded; nothing changed." {
		t.Errorf("the same certificate: said %q, %v", said, err)
	}
	values.Sections = map[string]string{"prices": "x"}
	if said, err := r.Reload(); err != nil || said != "Reloaded: prices." {
		t.Errorf("said %q, %v", said, err)
	}
	if err := os.WriteFile(flags.TLSCert, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reload(); err == nil {
		t.Error("a torn certificate was taken")
	}
	serves(2)
}

func writePair(t *testing.T, f config.TLSFlags, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{f.TLSCert: {Type: "CERTIFICATE", Bytes: cert}, f.TLSKey: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
