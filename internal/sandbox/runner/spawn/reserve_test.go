package spawn

import (
	"os"
	"runtime"
	"testing"
)

// What was reserved stays.
func TestReserve(t *testing.T) {
	threads := func() int {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	Reserve()
	if n := threads(); n <= spare { // and the one that asks
		t.Errorf("there are %d threads", n)
	}
}
