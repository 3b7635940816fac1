package config

import (
	"fmt"
	"strings"
)

// ByteSize is a size as people write it: 512M, 4G, 1073741824.
type ByteSize int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(string(text))), "B"), "I")
	unit := int64(1)
	for i, u := range "KMGT" {
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
