package queue

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Now returns the current time with the precision that stores keep.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Later returns at with the precision that stores keep, or the next microsecond after
// before if at is not later: each change of a row has a later time than the last.
func Later(at, before time.Time) time.Time {
	if at = at.UTC().Truncate(time.Microsecond); at.After(before) {
		return at
	}
	return before.Add(time.Microsecond)
}

// NewID returns the prefix and 24 random hexadecimal digits.
func NewID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}
