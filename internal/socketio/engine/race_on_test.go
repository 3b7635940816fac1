//go:build race

package engine

// raced is true under the race detector, which makes everything larger and slower.
const raced = true
