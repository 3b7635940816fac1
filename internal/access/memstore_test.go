package access_test

import (
	"testing"

	"deckhand/internal/access"
	"deckhand/internal/access/accesstest"
)

func TestMemStore(t *testing.T) {
	accesstest.Run(t, func(*testing.T) access.Store { return access.NewMemStore() })
}
