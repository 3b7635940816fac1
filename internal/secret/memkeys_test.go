package secret_test

import (
	"testing"

	"deckhand/internal/secret"
	"deckhand/internal/secret/keystoretest"
)

func TestMemKeys(t *testing.T) {
	keystoretest.Run(t, func(*testing.T) secret.KeyStore { return secret.NewMemKeys() })
}
