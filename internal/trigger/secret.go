package trigger

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Sealer seals what is stored for a user.
type Sealer interface {
	Seal(ctx context.Context, user, field string, plaintext []byte) ([]byte, error)
	Open(ctx context.Context, user, field string, sealed []byte) ([]byte, error)
}

// Overlap is how long a replaced secret is accepted beside the new one, so that
// the provider can be given the new one without a gap.
const Overlap = 24 * time.Hour

// secrets are what an integration's deliveries are signed with.
type secrets struct {
	Secret string `json:"secret"`
	// Old is the one before, which is good until OldUntil.
	Old      string    `json:"old,omitempty"`
	OldUntil time.Time `json:"old_until,omitzero"`
}

// newSecret makes one in the form that Standard Webhooks gives it, because
// GitLab takes no other for its signatures. For the rest it is just text.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return "whsec_" + base64.StdEncoding.EncodeToString(b[:])
}

func (s *secrets) rotate(now time.Time) {
	s.Old, s.OldUntil = s.Secret, now.Add(Overlap)
	s.Secret = newSecret()
}

// good are those that are accepted now.
func (s secrets) good(now time.Time) []string {
	if s.Old != "" && now.Before(s.OldUntil) {
		return []string{s.Secret, s.Old}
	}
	return []string{s.Secret}
}

func field(id string) string { return "integration." + id + ".secret" }

func sealSecrets(ctx context.Context, by Sealer, in Integration, s secrets) ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return by.Seal(ctx, in.User, field(in.ID), b)
}

func openSecrets(ctx context.Context, by Sealer, in Integration) (s secrets, err error) {
	b, err := by.Open(ctx, in.User, field(in.ID), in.Sealed)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	return s, err
}

// moment is now, as stores keep it.
func moment() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func random() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
