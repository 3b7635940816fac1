package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Age is a time in whole days or hours: 90d, 36h.
type Age time.Duration

const day = 24 * time.Hour

// String returns whole days as days.
func (a Age) String() string {
	switch d := time.Duration(a); {
	case d == 0:
		return "0"
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	default:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Age) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if s == "0" {
		*a = 0
		return nil
	}
	for suffix, unit := range map[string]time.Duration{"d": day, "h": time.Hour} {
		number, ok := strings.CutSuffix(s, suffix)
		if n, err := strconv.ParseUint(number, 10, 16); ok && err == nil { // more would not fit into a time.Duration
			*a = Age(time.Duration(n) * unit)
			return nil
		}
	}
	return fmt.Errorf("%q is not a time in days or hours; use a value such as 90d or 36h, or 0 for never", text)
}
