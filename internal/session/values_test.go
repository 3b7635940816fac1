package session_test

import (
	"math"
	"testing"

	"deckhand/internal/session"
)

func TestFromDollars(t *testing.T) {
	t.Parallel()
	for dollars, want := range map[float64]session.Money{
		0: 0, -1: 0, math.Inf(-1): 0, 1: 1e9, 0.1: 1e8, 0.29: 290_000_000, 1.0000000004: 1e9, 1.0000000006: 1e9 + 1,
		1e-12: 1, 9e9: 9e18, 1e30: 9e18, math.Inf(1): 9e18,
	} {
		if got := session.FromDollars(dollars); got != want {
			t.Errorf("%v dollars are %d, want %d", dollars, got, want)
		}
	}
	if got := session.FromDollars(math.NaN()); got != 0 {
		t.Errorf("no number is %d", got)
	}
}
