// Package secret keeps secrets secret: a type that cannot be printed, sealing at
// rest with one key per user, a masker per owner for what users see, and a redactor
// for our own logs.
package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Mask is what a secret looks like wherever it could be seen.
const Mask = "**********"

// Secret holds a string that no printing, logging or encoding gives away. The only
// way to its content is Reveal, which is easy to search for.
type Secret struct {
	// A pointer, so that even reflection that ignores our methods prints an address.
	value *string
}

// New hides s. The empty string gives the zero Secret.
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

// IsZero reports that there is no secret.
func (s Secret) IsZero() bool { return s.value == nil }

// Equal compares without telling by its duration where the contents differ.
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
