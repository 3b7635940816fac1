//go:build race

package live

// raced is true under the race detector, which makes everything larger.
const raced = true
