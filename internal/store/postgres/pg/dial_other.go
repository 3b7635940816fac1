//go:build !linux

package pg

// setUserTimeout does nothing: the limits of callers and the probes of idle connections remain.
func setUserTimeout(int) {}
