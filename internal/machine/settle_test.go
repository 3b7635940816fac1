package machine

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestRestIsNoticedOnce(t *testing.T) {
	t.Parallel()
	var p pace
	total := time.Duration(0)
	for i, c := range []struct {
		used time.Duration
		want bool
	}{{0, false}, {4 * time.Second, false}, {time.Second, false}, {400 * time.Millisecond, true}, {0, false}, {time.Second, false}, {0, true}} {
		if got := p.rested(total+c.used, restTime); got != c.want {
			t.Errorf("look %d, after %s of processor time: at rest %t, want %t", i, c.used, got, c.want)
		}
		total += c.used
	}
}

// What a burst needed is given back to the system. It is not parallel, so that other tests do
// not change the memory of the process.
func TestMemoryIsGivenBack(t *testing.T) {
	const size = 64 << 20
	during := func() int {
		burst := make([]byte, size)
		for i := 0; i < len(burst); i += 4096 {
			burst[i] = 1
		}
		return resident(t)
	}()
	giveBack()
	if after := resident(t); during-after < size/2 {
		t.Errorf("%d MB are resident after a burst of 64 MB, and %d MB were during it", after>>20, during>>20)
	}
}

// resident is the memory of this process in bytes.
func resident(t *testing.T) (bytes int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("needs /proc")
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscanf(value, "%d", &bytes); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bytes << 10
}
