package rights

import "testing"

func TestMapped(t *testing.T) {
	for text, want := range map[string]bool{"         0          0 4294967295\n": true, "0 100000 65536\n": false, "0 1000 1\n1 100000 65536\n": false, "": false} {
		if got := mapped(text, 0x20000000, 0x70000000); got != want {
			t.Errorf("map %q: %v", text, got)
		}
	}
}
