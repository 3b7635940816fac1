package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"deckhand/bench/history"
	"deckhand/bench/report"
	"deckhand/internal/agent"
	"deckhand/internal/live"
	"deckhand/internal/llm"
	"deckhand/internal/load"
	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
	"deckhand/internal/tool"
	"deckhand/internal/tool/think"
)

// thinker is a model in this process. It answers when it is told to: with a
// thought, or with its last word.
type thinker struct {
	asked  chan struct{}
	answer chan llm.Part
}

// Stream implements llm.Model.
func (m *thinker) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		var part llm.Part
		m.asked <- struct{}{}
		select {
		case part = <-m.answer:
		case <-ctx.Done():
			yield(part, ctx.Err())
			return
		}
		if yield(part, nil) {
			yield(llm.Part{Done: &llm.Done{Usage: llm.Usage{Input: 900, Output: 40}}}, nil)
		}
	}
}

// step has the agent think, and waits until it asks again: what lies between
// are a tool call and two rounds of appends.
func (m *thinker) step(ctx context.Context, n int) error {
	m.answer <- llm.Part{Call: &llm.Call{ID: fmt.Sprint("t", n), Name: think.Name, Args: json.RawMessage(fmt.Sprintf(`{"thought":"thought %d"}`, n))}}
	return m.await(ctx)
}

func (m *thinker) await(ctx context.Context) error {
	select {
	case <-m.asked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(load.TurnTime):
		return fmt.Errorf("the loop does not ask the model any more")
	}
}

// study is the loop of the server with thinkers.
type study struct {
	db       *sqlite.DB
	sessions *session.Sessions
	model    chan *thinker // of the next turn
}

// Steps that are compared: at these lengths of history, in so many of one turn.
var (
	stepsAt      = [3]int64{10, 10_000, 100_000}
	stepsPerTurn = 40
)

// longSteps compares a step of the loop late in a long conversation with one
// early in it, the lengths taking turns.
func longSteps(b *bench) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	s := &study{model: make(chan *thinker, 1)}
	if s.db, err = sqlite.Open(b.ctx, filepath.Join(dir, "long.db"), sqlite.Options{}); err != nil {
		return err
	}
	defer s.db.Close()
	s.sessions = session.New(s.db)
	hub := live.New(s.db, frames)
	loop := agent.New(agent.Config{Sessions: s.sessions, Log: s.db, Index: s.db, Deltas: hub, Logger: slog.New(slog.DiscardHandler), Profile: s.profile})
	s.sessions.Observe(hub)
	s.sessions.Watch(loop)
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	defer func() { stop(); <-ended }()

	var took [3][]time.Duration
	var allocs [3]float64
	for range pick(b, 5, 2) {
		if err := s.compare(b.ctx, &took, &allocs); err != nil {
			return err
		}
	}
	p50 := func(i int) float64 { return 1000 * load.Percentile(took[i], 50) }
	for i, size := range stepsAt[1:] {
		b.report.Add("warm", fmt.Sprintf("a step of the loop at %s events, p50, against one at 10", report.Figure(float64(size), report.Count)), report.Micros, p50(i+1), p50(0)).
			RatioAtMost(1.2).Comment("%.0f allocations, %.0f at 10; a model call and a tool call with their appends, without the bytes sent to the model", allocs[i+1], allocs[0])
	}
	say("a step at 100,000 events: %s", report.Figure(p50(2), report.Micros))
	return nil
}

// compare takes steps in new conversations, and counts their allocations at the end.
func (s *study) compare(ctx context.Context, took *[3][]time.Duration, allocs *[3]float64) error {
	var models [3]*thinker
	for i, size := range stepsAt {
		id, err := history.Store(ctx, s.db, "admin", size)
		if err == nil {
			models[i], err = s.begin(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	runtime.GC() // what was left behind by reading the long one is not a step's
	for n := range stepsPerTurn {
		for i, m := range models {
			begin := time.Now()
			if err := m.step(ctx, n); err != nil {
				return err
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for i, m := range models {
		var err error
		if allocs[i], err = allocations(5, func(n int) error { return m.step(ctx, stepsPerTurn+n) }); err != nil {
			return err
		}
		m.answer <- llm.Part{Text: "I have thought about it."}
	}
	return nil
}

// begin says something in a conversation, and waits until the model is asked.
func (s *study) begin(ctx context.Context, id session.ID) (*thinker, error) {
	m := &thinker{asked: make(chan struct{}), answer: make(chan llm.Part)}
	s.model <- m
	_, err := s.sessions.Update(ctx, id, func(st session.State) ([]session.Payload, error) {
		return st.Say(session.UserSaid{Text: "Think about it."})
	})
	if err != nil {
		return m, err
	}
	return m, m.await(ctx)
}

func (s *study) profile(ctx context.Context, _ session.State) (agent.Profile, error) {
	p := agent.Profile{Agent: "CodeActAgent", ModelName: modelName, Info: llm.Info{Tools: true}, System: "Think.", MaxAsks: 500, Tools: []tool.Tool{think.Tool{}}}
	select {
	case m := <-s.model:
		p.Model = m
		return p, nil
	case <-ctx.Done():
		return p, ctx.Err()
	}
}
