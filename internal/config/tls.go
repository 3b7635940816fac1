package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
)

// TLSFlags name the server's certificate.
type TLSFlags struct {
	TLSCert string `name:"tls-cert" env:"DECKHAND_TLS_CERT" placeholder:"FILE" help:"TLS certificate chain (PEM file)."`
	TLSKey  string `name:"tls-key" env:"DECKHAND_TLS_KEY" placeholder:"FILE" help:"Private key of the TLS certificate (PEM file)."`
}

// CheckTLS returns an error if the certificate cannot be used.
func (f TLSFlags) CheckTLS() error {
	if (f.TLSCert == "") != (f.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key must be used together")
	}
	_, err := f.load()
	return err
}

func (f TLSFlags) load() (*tls.Certificate, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return &pair, nil
}

// Certificate is the certificate of new connections. It can be replaced while the server runs.
type Certificate struct {
	pair atomic.Pointer[tls.Certificate]
}

// Load reads the files. If it fails, the current certificate remains in use.
func (c *Certificate) Load(f TLSFlags) error {
	pair, err := f.load()
	if err == nil {
		c.pair.Store(pair)
	}
	return err
}

// Config returns a TLS configuration that uses the certificate; nil if there is none.
func (c *Certificate) Config() *tls.Config {
	if c.pair.Load() == nil {
		return nil
	}
	return &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return c.pair.Load(), nil
	}}
}
