package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Age is a time that may be given in days: 90d, 36h.
type Age time.Duration

const day = 24 * time.Hour

// String returns whole days as days.
func (a Age) String() string {
	if d := time.Duration(a); d == 0 || d%day != 0 {
		return d.String()
	}
	return strconv.Itoa(int(time.Duration(a)/day)) + "d"
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Age) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	age, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16) // more would not fit into a time.Duration
		age = time.Duration(n) * day
	}
	if err != nil || age < 0 {
		return fmt.Errorf("%q is not a time; use a value such as 90d or 36h", text)
	}
	*a = Age(age)
	return nil
}
