package secret

import (
	"crypto/rand"
	"encoding/base64"
	"time"
)

// Overlap is how long a replaced key is good beside the new one, so that the
// other side can be given the new one without a gap.
const Overlap = 24 * time.Hour

// Rotating is a key that two sides sign with, and the one before it. It is
// stored sealed.
type Rotating struct {
	Secret string `json:"secret"`
	// Old is the one before, which is good until OldUntil.
	Old      string    `json:"old,omitempty"`
	OldUntil time.Time `json:"old_until,omitzero"`
}

// NewRotating makes a key in the form that Standard Webhooks gives it, because
// some take no other. For the rest it is just text.
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

// Good are the keys that hold now, the newest first.
func (r Rotating) Good(now time.Time) []string {
	if r.Old != "" && now.Before(r.OldUntil) {
		return []string{r.Secret, r.Old}
	}
	return []string{r.Secret}
}
