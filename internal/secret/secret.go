// Package secret protects secrets: a type that cannot be printed, encryption at rest with
// one key for each user, a masker for each owner for text that users see, and a redactor
// for the server's logs.
package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Mask replaces a secret in any output.
const Mask = "**********"

// Secret is a string that is never printed, logged or encoded. Reveal is the only way to
// read it, and is easy to search for.
type Secret struct {
	// A pointer, so that even reflection that bypasses our methods prints an address.
	value *string
}

// New returns a Secret with s. The empty string gives the zero Secret.
func New(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{value: &s}
}

// Reveal returns the content.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.value == nil }

// Equal compares in constant time.
func (s Secret) Equal(o Secret) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(o.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// String returns the mask.
func (Secret) String() string { return Mask }

// GoString returns the mask.
func (Secret) GoString() string { return Mask }

// Format writes the mask for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Mask) }

// LogValue returns the mask.
func (Secret) LogValue() slog.Value { return slog.StringValue(Mask) }

// MarshalJSON returns the mask.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + Mask + `"`), nil }

// MarshalText returns the mask.
func (Secret) MarshalText() ([]byte, error) { return []byte(Mask), nil }
