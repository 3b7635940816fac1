package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"time"
)

// Trust makes the tool trust these certificates.
func (t *Tool) Trust(roots *x509.CertPool) { t.tls = &tls.Config{RootCAs: roots} }

// Hurry shortens the time that a page may take.
func (t *Tool) Hurry(d time.Duration) { t.timeout = d }
