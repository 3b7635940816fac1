// Package soak chooses how long a test runs. A measurement that needs thousands
// of rounds has a short form in make test and its full length in make soak.
package soak

import (
	"os"
	"testing"
)

// On reports whether tests run at full length: DECKHAND_SOAK is set.
func On() bool { return os.Getenv("DECKHAND_SOAK") != "" }

// Times returns usual, or full when tests run at full length.
func Times(usual, full int) int {
	if On() {
		return full
	}
	return usual
}

// NotShort leaves a test out of the short round. What it does there is said in
// the reason: "starts sandboxes".
func NotShort(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED in the short round: " + why)
	}
}
