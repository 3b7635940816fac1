package capacity

import (
	"fmt"
	"io"
	"math"
	"time"

	"deckhand/internal/load"
	"deckhand/internal/machine"
)

// Report is the answer, as --json prints it.
type Report struct {
	Agents  int     `json:"agents"`
	Every   float64 `json:"every_seconds"`
	Limit   string  `json:"limit"` // processor or memory
	Stopped string  `json:"stopped"`
	Steps   []Step  `json:"steps"`

	Processor struct {
		Cores   int     `json:"cores"`
		Rate    float64 `json:"turns_per_second"` // at most
		PerTurn float64 `json:"ms_per_turn"`
		Agents  int     `json:"agents"`
	} `json:"processor"`
	Memory struct {
		Total           float64 `json:"total_mb"`
		Idle            float64 `json:"idle_mb"`
		PerConversation float64 `json:"mb_per_conversation"`
		Agents          int     `json:"agents"`
	} `json:"memory"`
	Disk struct {
		FlushMillis float64 `json:"durable_write_ms"`
		PerTurn     float64 `json:"bytes_per_turn"`
		PerDay      float64 `json:"gb_per_day"` // of that many agents
	} `json:"disk"`
	FirstTurns struct {
		P50  float64 `json:"p50_ms"`
		Rate float64 `json:"per_second"`
	} `json:"first_turns"`
}

// measured is what the answer is made of.
type measured struct {
	steps        []Step
	reason       string
	every        time.Duration
	latency      time.Duration
	idle, memory float64 // MB
	cores        int
	flush        time.Duration
	bytesPerTurn float64
	first        load.Rounds
}

// spare is the part of the machine that is counted on: agents do not act evenly, and a full
// queue is slow.
const spare = 0.7

// report says how many agents there can be: as many as processor and memory both allow.
func (m measured) report() *Report {
	r := &Report{Every: m.every.Seconds(), Stopped: m.reason, Steps: m.steps}
	best := m.steps[0]
	for _, s := range m.steps {
		if s.Rate > best.Rate && s.P99 <= float64(m.latency.Milliseconds()) {
			best = s
		}
	}
	last := m.steps[len(m.steps)-1]
	r.Processor.Cores, r.Processor.Rate = m.cores, best.Rate
	r.Processor.PerTurn = 1000 * best.Cores / best.Rate
	r.Processor.Agents = round(spare * best.Rate * m.every.Seconds())
	r.Memory.Total, r.Memory.Idle = m.memory, m.idle
	r.Memory.PerConversation = max((last.Memory-m.idle)/float64(last.Conversations), 0.01)
	r.Memory.Agents = round((spare*m.memory - m.idle) / r.Memory.PerConversation)
	r.Agents, r.Limit = r.Processor.Agents, "processor"
	if r.Memory.Agents < r.Agents {
		r.Agents, r.Limit = r.Memory.Agents, "memory"
	}
	r.Disk.FlushMillis, r.Disk.PerTurn = float64(m.flush.Microseconds())/1000, m.bytesPerTurn
	r.Disk.PerDay = m.bytesPerTurn * float64(r.Agents) / m.every.Seconds() * 86400 / 1e9
	r.FirstTurns.P50 = m.first.Delay(50)
	if took := m.first[0].Took; took > 0 {
		r.FirstTurns.Rate = m.first.Rate()
	}
	return r
}

// round drops digits that mean nothing: 1,347 becomes 1,300.
func round(agents float64) int {
	if agents < 1 {
		return 0
	}
	unit := math.Pow(10, max(math.Floor(math.Log10(agents))-1, 0))
	return int(math.Floor(agents/unit) * unit)
}

// print says it in words.
func (r *Report) print(w io.Writer) {
	every := time.Duration(r.Every * float64(time.Second))
	fmt.Fprintf(w, "\nThis machine carries about %d agents that act every %v. The %s is the limit.\n\n", r.Agents, every, r.Limit)
	p, m, d := r.Processor, r.Memory, r.Disk
	fmt.Fprintf(w, "Processor: %.0f turns per second at most on %d cores, %.1f ms of processor time each. At %.0f%% of that: %d agents.\n", p.Rate, p.Cores, p.PerTurn, 100*spare, p.Agents)
	fmt.Fprintf(w, "Memory:    %.0f MB for an idle server, %.1f MB for each conversation at work. In %.0f%% of %.1f GB: %d agents.\n", m.Idle, m.PerConversation, 100*spare, m.Total/1024, m.Agents)
	fmt.Fprintf(w, "Disk:      %.1f kB for each turn, so %.1f GB a day with %d agents. A durable write takes %.2f ms.\n", d.PerTurn/1000, d.PerDay, r.Agents, d.FlushMillis)
	fmt.Fprintf(w, "Start:     the first turn of a conversation, which starts its sandbox, takes %.0f ms at the median under load.\n\n", r.FirstTurns.P50)
	if live := machine.LiveSandboxes(0); r.Agents > live {
		fmt.Fprintf(w, "Of these agents, %d keep their sandboxes running. Others that act seldom are suspended in between, and continuing costs about as much as a first turn; --max-live-sandboxes changes the number.\n", live)
	}
	fmt.Fprintln(w, "Programs that ran at the same time make the numbers smaller. Add what the agents' own commands need: compilers, tests, browsers.")
}
