package secret

import (
	"crypto/rand"
	"encoding/base64"
	"time"
)

// Overlap is how long a replaced key stays valid, so that the other side can be updated
// without a gap.
const Overlap = 24 * time.Hour

// Rotating is a signing key and its predecessor. It is stored sealed.
type Rotating struct {
	Secret string `json:"secret"`
	// Old is the predecessor, which is valid until OldUntil.
	Old      string    `json:"old,omitempty"`
	OldUntil time.Time `json:"old_until,omitzero"`
}

// NewRotating returns a new key in the format of Standard Webhooks, because some
// receivers accept no other.
func NewRotating() Rotating { return Rotating{Secret: newSigningKey()} }

func newSigningKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return "whsec_" + base64.StdEncoding.EncodeToString(b[:])
}

// Rotate replaces the key.
func (r *Rotating) Rotate(now time.Time) {
	*r = Rotating{Secret: newSigningKey(), Old: r.Secret, OldUntil: now.Add(Overlap)}
}

// Good returns the valid keys, newest first.
func (r Rotating) Good(now time.Time) []string {
	if r.Old != "" && now.Before(r.OldUntil) {
		return []string{r.Secret, r.Old}
	}
	return []string{r.Secret}
}
