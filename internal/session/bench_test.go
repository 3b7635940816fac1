package session_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"deckhand/internal/session"
)

// nowhere is a Log that keeps nothing: what is measured on it is the session's own work.
type nowhere struct{}

func (nowhere) Append(context.Context, session.Batch) error { return nil }
func (nowhere) Read(context.Context, session.ID, int64) iter.Seq2[session.Event, error] {
	return func(func(session.Event, error) bool) {}
}

// history makes a session of about n events that looks like one: turns with
// messages, model calls and tools.
func history(t testing.TB, s *session.Sessions, id session.ID, n int64) session.State {
	t.Helper()
	ctx := context.Background()
	st, err := s.Create(ctx, id, created, nil)
	step := func(p ...session.Payload) {
		if err == nil {
			st, err = s.Update(ctx, id, do(p...))
		}
	}
	step(claimed, ready)
	for i := 0; st.Last < n && err == nil; i++ {
		step(session.UserSaid{Text: "go on", Key: fmt.Sprint("key", i)}, session.TurnBegan{})
		call, tool := fmt.Sprint("m", i), fmt.Sprint("t", i)
		step(session.ModelAsked{Call: call, Reserved: 5, UpTo: st.Last})
		step(session.ModelAnswered{Call: call, Cost: 4, ToolCalls: []session.ToolCall{{ID: tool, Name: "bash"}}})
		step(session.ToolCalled{ToolCall: session.ToolCall{ID: tool, Name: "bash"}})
		step(session.ToolReturned{ID: tool, Name: "bash", Cause: st.Last, Outcome: session.Succeeded, Output: "ok"})
		step(session.TurnEnded{UpTo: st.Shown, State: session.AgentAwaitingUser})
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// step is what a turn costs over and over: a question, an answer, a tool, its result.
func step(s *session.Sessions, id session.ID) error {
	ctx := context.Background()
	rules := []decision{
		func(s session.State) ([]session.Payload, error) {
			return []session.Payload{session.UserSaid{Text: "x"}, session.TurnBegan{}}, nil
		},
		func(s session.State) ([]session.Payload, error) {
			return s.AskModel(s.Claim, session.ModelAsked{Call: "m", Model: "model", Reserved: 5}, nil)
		},
		func(s session.State) ([]session.Payload, error) { return s.Answered(s.Claim, twoCalls) },
		func(s session.State) ([]session.Payload, error) { return s.CallNext(s.Claim, session.RiskLow, nil) },
		func(s session.State) ([]session.Payload, error) {
			return s.Returned(s.Claim, session.ToolReturned{ID: "a"})
		},
		func(s session.State) ([]session.Payload, error) { return s.CallNext(s.Claim, session.RiskLow, nil) },
		func(s session.State) ([]session.Payload, error) {
			return s.Returned(s.Claim, session.ToolReturned{ID: "b"})
		},
		func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(s.Claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
		},
	}
	for _, r := range rules {
		if _, err := s.Update(ctx, id, r); err != nil {
			return err
		}
	}
	return nil
}

var lengths = []int64{10, 1_000, 100_000}

func BenchmarkFold(b *testing.B) {
	for _, n := range lengths {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			log := newFaulty()
			st := history(b, session.New(log), theID, n)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if _, err := session.Fold(context.Background(), log, session.State{ID: theID}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(st.Last), "ns/event")
		})
	}
}

// BenchmarkUpdateAt is one whole step, eight appends, at different lengths of history.
func BenchmarkUpdateAt(b *testing.B) {
	for _, n := range lengths {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := session.New(nowhere{})
			history(b, s, theID, n)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := step(s, theID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The cost of a step must not grow with the history.
func TestStepAllocatesTheSameAtAnyLength(t *testing.T) {
	measure := func(n int64) float64 {
		s := session.New(nowhere{})
		history(t, s, theID, n)
		return testing.AllocsPerRun(50, func() {
			if err := step(s, theID); err != nil {
				t.Fatal(err)
			}
		})
	}
	short, long := measure(10), measure(10_000)
	if short != long {
		t.Errorf("a step makes %v allocations at 10 events and %v at 10,000", short, long)
	}
}
