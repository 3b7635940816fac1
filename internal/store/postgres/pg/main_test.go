package pg

import (
	"testing"

	"deckhand/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
