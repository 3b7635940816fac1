//go:build !race

package takeover_test

const raceEnabled = false
