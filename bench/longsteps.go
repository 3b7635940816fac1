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

	"deckhand/internal/agent"
	"deckhand/internal/live"
	"deckhand/internal/llm"
	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
	"deckhand/internal/tool"
	"deckhand/internal/tool/think"
)

// stepsPerTurn is how many tool calls the thinker makes in a turn.
const stepsPerTurn = 20

// thinker is a model in this process. It asks for one thought after the other,
// and keeps when it was asked: from one time to the next is a step.
type thinker struct {
	asked  []time.Time
	before uint64 // allocations, when the first was asked
	allocs uint64 // and how many there were up to the last
	done   chan struct{}
}

// Stream implements llm.Model.
func (m *thinker) Stream(context.Context, llm.Request) iter.Seq2[llm.Part, error] {
	var mem runtime.MemStats
	n := len(m.asked)
	switch n {
	case 0:
		runtime.ReadMemStats(&mem)
		m.before = mem.Mallocs
	case stepsPerTurn:
		runtime.ReadMemStats(&mem)
		m.allocs = mem.Mallocs - m.before
	}
	m.asked = append(m.asked, time.Now())
	return func(yield func(llm.Part, error) bool) {
		part := llm.Part{Text: "I have thought about it."}
		if n < stepsPerTurn {
			part = llm.Part{Call: &llm.Call{ID: fmt.Sprint("t", n), Name: think.Name, Args: json.RawMessage(fmt.Sprintf(`{"thought":"thought %d"}`, n))}}
		}
		if yield(part, nil) {
			yield(llm.Part{Done: &llm.Done{Usage: llm.Usage{Input: 900, Output: 40}}}, nil)
		}
		if n == stepsPerTurn {
			close(m.done)
		}
	}
}

// study is the loop of the server with the thinker.
type study struct {
	db       *sqlite.DB
	sessions *session.Sessions
	model    chan *thinker // of the next turn
}

// longSteps compares a step of the loop late in a long conversation with one
// early in it. A step is a model call, a tool call and all their appends.
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
	s.sessions.Observe(loop)
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	defer func() { stop(); <-ended }()

	sizes := [2]int64{10, 10_000}
	var took [2][]time.Duration
	var allocs [2]uint64
	for range pick(b, 15, 4) {
		for i, size := range sizes {
			id, err := store(b.ctx, s.db, "admin", size)
			if err != nil {
				return err
			}
			m, err := s.think(b.ctx, id)
			if err != nil {
				return err
			}
			for n := 1; n < len(m.asked); n++ {
				took[i] = append(took[i], m.asked[n].Sub(m.asked[n-1]))
			}
			allocs[i] = m.allocs / stepsPerTurn
		}
	}
	b.report.add("turns", "a step of the loop at 10,000 events, p50, against one at 10", micros, 1000*percentile(took[1], 50), 1000*percentile(took[0], 50)).
		ratioAtMost(1.2).note("%d allocations, %d at 10; a model call and a tool call with their appends", allocs[1], allocs[0])
	say("a step at 10,000 events: %s", figure(1000*percentile(took[1], 50), micros))
	return nil
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

// think lets the loop work on one message.
func (s *study) think(ctx context.Context, id session.ID) (*thinker, error) {
	m := &thinker{done: make(chan struct{})}
	s.model <- m
	if _, err := s.sessions.Update(ctx, id, func(st session.State) ([]session.Payload, error) {
		return st.Say(session.UserSaid{Text: "Think about it."})
	}); err != nil {
		return m, err
	}
	select {
	case <-m.done:
		return m, nil
	case <-ctx.Done():
		return m, ctx.Err()
	case <-time.After(turnTime):
		return m, fmt.Errorf("the loop made %d model calls and no more", len(m.asked))
	}
}
