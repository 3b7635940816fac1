package pg

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.Stop()
		os.Exit(code)
	}))
}
