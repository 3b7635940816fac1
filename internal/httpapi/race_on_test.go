//go:build race

package httpapi

// raced is true when the race detector makes everything slow.
const raced = true
