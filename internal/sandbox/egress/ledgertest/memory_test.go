package ledgertest

import (
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) egress.Ledger { return &Memory{} })
}
