package logtest_test

import (
	"testing"

	"deckhand/internal/session/logtest"
	"deckhand/internal/session/memlog"
)

func TestMemlogLedger(t *testing.T) {
	logtest.RunLedger(t, func(*testing.T) logtest.LedgerStore { return memlog.New() })
}
