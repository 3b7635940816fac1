package capacity

import (
	"errors"
	"strings"
	"testing"
	"time"

	"deckhand/internal/load"
)

// machineOf answers rounds as a machine would that makes at most so many turns per second.
func machineOf(most float64, each time.Duration, memory float64) func(int) (Step, error) {
	return func(n int) (Step, error) {
		rate := min(float64(n)/each.Seconds(), most)
		delay := 1000 * float64(n) / rate
		return Step{Conversations: n, Rate: rate, P50: delay, P99: delay, Cores: 2 * rate / most, Memory: 50 + memory*float64(n)}, nil
	}
}

func TestClimbStops(t *testing.T) {
	t.Parallel()
	bounds := Bounds{Latency: 2 * time.Second, Memory: 1000, Until: time.Now().Add(time.Hour)}
	failed := errors.New("a turn failed")
	late := bounds
	late.Until = time.Now()
	for name, c := range map[string]struct {
		bounds Bounds
		round  func(int) (Step, error)
		last   int
		reason string
	}{
		"when turns stop growing": {bounds, machineOf(400, 10*time.Millisecond, 1), 32, "no more turns"},
		"when turns take long":    {bounds, machineOf(10, time.Second, 1), 32, "longer than 2s"},
		"when memory is used up":  {bounds, machineOf(1e9, 10*time.Millisecond, 10), 128, "more than 1000 MB"},
		"when there is no more":   {bounds, machineOf(1e9, 10*time.Millisecond, 0), 512, "no bound"},
		"when the time is over":   {late, machineOf(1e9, 10*time.Millisecond, 0), 1, "time is over"},
	} {
		steps, reason, err := climb(c.bounds, c.round)
		if err != nil || len(steps) == 0 || steps[len(steps)-1].Conversations != c.last || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: ended after %v: %q, %v; wanted %d conversations: %q", name, steps, reason, err, c.last, c.reason)
		}
	}
	if _, _, err := climb(bounds, func(int) (Step, error) { return Step{}, failed }); !errors.Is(err, failed) {
		t.Errorf("a failed turn: %v; wanted the failure", err)
	}
}

func TestReportCountsWhatIsScarce(t *testing.T) {
	t.Parallel()
	m := measured{
		steps: []Step{
			{Conversations: 1, Rate: 100, P99: 10, Cores: 0.5, Memory: 52},
			{Conversations: 32, Rate: 200, P99: 300, Cores: 1.6, Memory: 114},
			{Conversations: 64, Rate: 300, P99: 5000, Cores: 2, Memory: 178},
		},
		every: 10 * time.Second, latency: 2 * time.Second, idle: 50, memory: 10_000, cores: 2, bytesPerTurn: 10_000,
		first: load.Rounds{{Took: time.Second, Delays: []time.Duration{30 * time.Millisecond}}},
	}
	r := m.report()
	if r.Agents != 1400 || r.Limit != "processor" || r.Processor.PerTurn != 8 || r.Memory.PerConversation != 2 || r.Memory.Agents != 3400 {
		t.Errorf("%+v; wanted 1,400 agents by the processor: 70 %% of the 200 turns/s that were fast enough, every 10 s", r)
	}
	if r.Disk.PerDay < 120 || r.Disk.PerDay > 122 {
		t.Errorf("%.1f GB a day; wanted 140 turns/s of 10 kB", r.Disk.PerDay)
	}
	m.memory = 1000
	if r := m.report(); r.Agents != 320 || r.Limit != "memory" {
		t.Errorf("%d agents by %s; wanted 320 by memory", r.Agents, r.Limit)
	}
	var out strings.Builder
	r.print(&out)
	if !strings.Contains(out.String(), "This machine carries about 1400 agents that act every 10s. The processor is the limit.") {
		t.Error(out.String())
	}
}
