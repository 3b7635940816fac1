package main

import "testing"

// The health of the server in a real browser.
func TestHealthInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	newTheatre(t, "ada").play(t, "health.mjs")
}
