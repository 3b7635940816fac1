package trigger

import (
	"context"
	"encoding/json"

	"deckhand/internal/secret"
)

// Sealer seals what is stored for a user.
type Sealer interface {
	Seal(ctx context.Context, user, field string, plaintext []byte) ([]byte, error)
	Open(ctx context.Context, user, field string, sealed []byte) ([]byte, error)
}

func field(id string) string { return "integration." + id + ".secret" }

func sealSecrets(ctx context.Context, by Sealer, in Integration, s secret.Rotating) ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return by.Seal(ctx, in.User, field(in.ID), b)
}

func openSecrets(ctx context.Context, by Sealer, in Integration) (s secret.Rotating, err error) {
	b, err := by.Open(ctx, in.User, field(in.ID), in.Sealed)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	return s, err
}
