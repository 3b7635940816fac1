package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
	"deckhand/internal/tool"
)

// stride is a model that asks for a call at every step, and tells the test of
// each: when it began, and what was allocated until then.
type stride struct {
	steps int
	began chan struct{}
	goOn  chan struct{}
	done  chan struct{}

	n     atomic.Int64
	alloc []uint64
	count []uint64
}

func (m *stride) Stream(context.Context, llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		n := int(m.n.Add(1))
		switch {
		case n == 1:
			close(m.began)
			<-m.goOn
		case n > m.steps:
			close(m.done)
			yield(llm.Part{}, &llm.Error{Class: llm.ClassAuth})
			return
		}
		if m.alloc != nil {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			m.alloc, m.count = append(m.alloc, now.TotalAlloc), append(m.count, now.Mallocs)
		}
		args := json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, n))
		if yield(llm.Part{Call: &llm.Call{ID: "a", Name: "say", Args: args}}, nil) {
			yield(llm.Part{Done: &llm.Done{Usage: llm.Usage{Input: 100, Output: 10}}}, nil)
		}
	}
}

// history is a log with a session of so many events, in the middle of its turn.
func history(tb testing.TB, events int) (*memlog.Log, session.ID) {
	tb.Helper()
	id := session.NewID()
	payloads := []session.Payload{session.Created{Owner: "ada"}, session.UserSaid{Text: "go"}, session.Claimed{By: "before"}, session.WorkspaceReady{}, session.TurnBegan{}}
	for n := 0; len(payloads)+4 <= events; n++ {
		call := session.ToolCall{ID: fmt.Sprint("c", n), Name: "say", Args: json.RawMessage(fmt.Sprintf(`{"text":"before %d"}`, n))}
		last := int64(len(payloads))
		payloads = append(payloads, session.ModelAsked{Call: fmt.Sprint("m", n), UpTo: last},
			session.ModelAnswered{Call: fmt.Sprint("m", n), Text: "I do it.", ToolCalls: []session.ToolCall{call}},
			session.ToolCalled{ToolCall: call, Answer: last + 2}, session.ToolReturned{ID: call.ID, Name: call.Name, Cause: last + 3, Outcome: session.Succeeded, Output: fmt.Sprint("done ", n)})
	}
	st := session.State{ID: id}
	batch := session.Batch{ID: id}
	for _, p := range payloads {
		e := session.Event{Number: st.Last + 1, At: time.Unix(1e9, 0).UTC(), Payload: p}
		if err := st.Check(p); err != nil {
			tb.Fatal(err)
		}
		st, batch.Events = st.Apply(e), append(batch.Events, e)
	}
	batch.Row = st.Row()
	log := memlog.New()
	if err := log.Append(tb.Context(), batch); err != nil {
		tb.Fatal(err)
	}
	return log, id
}

type silent struct{}

func (silent) Delta(session.ID, string, string) {}
func (silent) Hold(session.ID, string, string)  {}
func (silent) EndDelta(session.ID, string)      {}

// walk takes so many steps on a history of so many events. between is called
// when the history was read and the first step begins.
func walk(tb testing.TB, events int, m *stride, between func()) {
	tb.Helper()
	log, _ := history(tb, events)
	m.began, m.goOn, m.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	sessions := session.New(log)
	loop := agent.New(agent.Config{Sessions: sessions, Log: log, Index: log, Deltas: silent{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Profile: func(context.Context, session.State) (agent.Profile, error) {
			p := profile(m)
			p.MaxAsks, p.Info, p.Tools = 1e9, llm.Info{Window: 1 << 40}, []tool.Tool{newHand("say")}
			return p, nil
		}})
	sessions.Watch(loop)
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = loop.Run(ctx) }()
	<-m.began
	between()
	close(m.goOn)
	<-m.done
	cancel()
	<-ended
}

func benchmarkStep(b *testing.B, events int) {
	b.ReportAllocs()
	b.StopTimer()
	for left := b.N; left > 0; {
		m := &stride{steps: min(left, 100)}
		left -= m.steps
		walk(b, events, m, b.StartTimer)
		b.StopTimer()
	}
}

func BenchmarkStepAt10(b *testing.B)    { benchmarkStep(b, 10) }
func BenchmarkStepAt10000(b *testing.B) { benchmarkStep(b, 10_000) }

// A step costs what is new in it, not what is old.
func TestStepCostsTheSameInLongHistories(t *testing.T) {
	measure := func(events int) (bytes, objects uint64) {
		m := &stride{steps: 41, alloc: []uint64{}}
		walk(t, events, m, func() {})
		return median(m.alloc), median(m.count)
	}
	shortBytes, shortObjects := measure(10)
	longBytes, longObjects := measure(10_000)
	t.Logf("at 10: %d bytes, %d objects; at 10000: %d bytes, %d objects", shortBytes, shortObjects, longBytes, longObjects)
	if longBytes > 2*shortBytes || longObjects > 3*shortObjects/2 {
		t.Errorf("a step at event 10 allocates %d bytes in %d objects, one at event 10000 %d in %d", shortBytes, shortObjects, longBytes, longObjects)
	}
}

// median is that of the differences: now and then a list grows, which does not count.
func median(at []uint64) uint64 {
	var d []uint64
	for i := range at[1:] {
		d = append(d, at[i+1]-at[i])
	}
	slices.Sort(d)
	return d[len(d)/2]
}
