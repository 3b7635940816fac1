package gemini

import (
	"errors"
	"strings"
	"testing"
)

// A frame without an end is not collected without bound.
func TestLongestFrame(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	for name, text := range map[string]string{"one line": strings.Repeat("x", longestFrame), "many lines": strings.Repeat(line, 33)} {
		body := strings.NewReader(text + strings.Repeat(line, 3))
		for _, err := range chunks(body) {
			if !errors.Is(err, errUnreadable) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if body.Len() == 0 {
			t.Errorf("%s: all of it was read", name)
		}
	}
}
