package logtest_test

import (
	"testing"

	"deckhand/internal/session/logtest"
	"deckhand/internal/session/memlog"
)

func TestMemlog(t *testing.T) {
	logtest.Run(t, func(*testing.T) logtest.Store { return memlog.New() })
}
