package config

import (
	"fmt"
	"strings"
)

// ByteSize is a size as people write it: 512M, 4G, 1073741824.
type ByteSize int64

// String returns the size with the largest unit of which it is a multiple.
func (b ByteSize) String() string {
	unit := 0
	for ; unit < len(units) && b != 0 && b%1024 == 0; unit++ {
		b /= 1024
	}
	if unit == 0 {
		return fmt.Sprint(int64(b))
	}
	return fmt.Sprintf("%d%c", int64(b), units[unit-1])
}

const units = "KMGT"

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(string(text))), "B"), "I")
	unit := int64(1)
	for i, u := range units {
		if t, ok := strings.CutSuffix(s, string(u)); ok {
			s, unit = t, 1<<(10*(i+1))
			break
		}
	}
	var n float64
	if _, err := fmt.Sscanf(s+"\n", "%g\n", &n); err != nil || n <= 0 || n*float64(unit) > 1<<62 {
		return fmt.Errorf("%q is not a size; use a value such as 512M or 4G", text)
	}
	*b = ByteSize(n * float64(unit))
	return nil
}
