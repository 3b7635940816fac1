//go:build !linux

package pg

// limitSilence does nothing: the limits of callers and the probes of idle connections remain.
func limitSilence(int) {}
