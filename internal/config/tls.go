package config

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
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

// Load reads the files, and reports whether the certificate differs from the current one. If it fails, that one remains in use.
func (c *Certificate) Load(f TLSFlags) (changed bool, err error) {
	pair, err := f.load()
	if err != nil {
		return false, err
	}
	old := c.pair.Swap(pair)
	return pair != nil && (old == nil || !slices.EqualFunc(old.Certificate, pair.Certificate, bytes.Equal)), nil
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
