package machine

import "testing"

func TestGarbagePercent(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 200, 10 << 20: 200, 48 << 20: 200, 64 << 20: 140, 96 << 20: 100, 8 << 30: 100} {
		if got := garbagePercent(live); got != want {
			t.Errorf("%d MB in use: %d percent, want %d", live>>20, got, want)
		}
	}
}
