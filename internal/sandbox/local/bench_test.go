package local

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/launcher"
)

// BenchmarkStart measures from Start to the first answer of a program inside,
// beside what namespaces cost at least: in turns, so that both see the same
// machine. times-floor is the one's median over the other's. A burst of starts
// finds no runner waiting; others do.
func BenchmarkStart(b *testing.B) {
	for _, waiting := range []bool{true, false} {
		b.Run(fmt.Sprintf("waiting=%v", waiting), func(b *testing.B) { benchmarkStart(b, waiting) })
	}
}

func benchmarkStart(b *testing.B, waiting bool) {
	d := newDriver(b)
	if _, err := d.Start(b.Context(), sandbox.Spec{ID: "warm"}, nil); err != nil {
		b.Fatal(err)
	}
	if !waiting {
		d.closeSpare()
	}
	var floors, placed, answered []time.Duration
	for i := 0; b.Loop(); i++ {
		if waiting {
			d.spare.work.Wait()
		}
		floors = append(floors, bare(b, d))
		began := time.Now()
		h, err := d.Start(b.Context(), sandbox.Spec{ID: "b" + strconv.Itoa(i)}, nil)
		if err != nil {
			b.Fatal(err)
		}
		placed = append(placed, time.Since(began))
		s, err := d.Attach(b.Context(), h)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Run(b.Context(), sandbox.Process{Args: []string{"/bin/true"}}, nil); err != nil {
			b.Fatal(err)
		}
		answered = append(answered, time.Since(began))
		s.Close()
		if err := d.Destroy(b.Context(), h); err != nil {
			b.Fatal(err)
		}
	}
	ms := func(list []time.Duration, p float64) float64 {
		slices.Sort(list)
		return float64(list[int(float64(len(list)-1)*p)].Microseconds()) / 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(floors, .5), "floor-p50-ms")
	b.ReportMetric(ms(floors, .99), "floor-p99-ms")
	b.ReportMetric(ms(placed, .5), "start-p50-ms")
	b.ReportMetric(ms(answered, .5), "answer-p50-ms")
	b.ReportMetric(ms(answered, .99), "answer-p99-ms")
	b.ReportMetric(ms(answered, .5)/ms(floors, .5), "times-floor")
}

// bare starts a program in the same namespaces, with nothing in them.
func bare(tb testing.TB, d *Driver) time.Duration {
	tb.Helper()
	began := time.Now()
	cmd := exec.Command("/bin/true")
	user := uint32(0)
	if d.rights.Ranges {
		user = firstUser
	}
	cmd.SysProcAttr = launcher.Attributes(launcher.Order{User: user, Users: rangeSize})
	if err := cmd.Run(); err != nil {
		tb.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkIdle measures what a sandbox that does nothing takes in memory, its
// share of what all share included.
func BenchmarkIdle(b *testing.B) {
	d := newDriver(b)
	for b.Loop() {
	}
	const n = 50
	var pss, anonymous int
	for i := range n {
		s, h := start(b, d, sandbox.Spec{ID: "i" + strconv.Itoa(i)})
		s.Close()
		defer d.Destroy(b.Context(), h)
	}
	for i := range n {
		m, err := readMeta(fmt.Sprintf("%s/i%d", d.dir, i))
		if err != nil {
			b.Fatal(err)
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", m.PID))
		if err != nil {
			b.Skipf("SKIPPED: only root may read the memory map of a runner: %v", err)
		}
		for line := range strings.Lines(string(text)) {
			var kib int
			if _, err := fmt.Sscanf(line, "Pss: %d", &kib); err == nil {
				pss += kib
			}
			if _, err := fmt.Sscanf(line, "Pss_Anon: %d", &kib); err == nil {
				anonymous += kib
			}
		}
	}
	b.ReportMetric(float64(pss)/n, "pss-KiB")
	b.ReportMetric(float64(anonymous)/n, "anon-KiB")
}

var _ = syscall.SIGKILL
