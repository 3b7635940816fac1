package main

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"time"

	"deckhand/bench/history"
	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
)

// lengths of history that are compared, and how many sessions of each there
// are: short ones must not become long while they are measured.
var lengths = []struct {
	events   int64
	sessions int
}{{10, 60}, {1_000, 10}, {100_000, 1}}

// yard is a store with sessions of every length, and followers of them.
type yard struct {
	db       *sqlite.DB
	sessions *session.Sessions
	ids      [][]session.ID
}

// steps measures whether a step costs the same at any length of history.
func steps(b *bench) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	db, err := sqlite.Open(b.ctx, filepath.Join(dir, "steps.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	y := &yard{db: db, sessions: session.New(db)}
	hub, err := openHub(y)
	if err != nil {
		return err
	}
	defer hub.close()
	if err := y.fill(b.ctx); err != nil {
		return err
	}
	say("stored sessions of 10, 1,000 and 100,000 events")
	for _, measure := range []func(*bench, *yard) error{updates, updatesAlone, folds} {
		if err := measure(b, y); err != nil {
			return err
		}
	}
	return hub.latencies(b, y)
}

// fill stores the sessions and folds each once, so that it is in the cache.
func (y *yard) fill(ctx context.Context) error {
	for _, l := range lengths {
		var ids []session.ID
		for range l.sessions {
			id, err := history.Store(ctx, y.db, "admin", l.events)
			if err != nil {
				return err
			}
			if _, err := y.sessions.Load(ctx, id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		y.ids = append(y.ids, ids)
	}
	return nil
}

// turnUpdates is how many updates turn makes.
const turnUpdates = 6

// turn is what a working session does over and over.
func turn(ctx context.Context, s *session.Sessions, id session.ID) error {
	call := session.ToolCall{ID: "t", Name: "bash"}
	for _, rule := range [turnUpdates]func(session.State) ([]session.Payload, error){
		func(s session.State) ([]session.Payload, error) {
			return []session.Payload{session.UserSaid{Text: "Go on."}, session.TurnBegan{}}, nil
		},
		func(s session.State) ([]session.Payload, error) {
			return s.AskModel(s.Claim, session.ModelAsked{Call: "m", Model: "scripted/demo", Reserved: 5}, nil)
		},
		func(s session.State) ([]session.Payload, error) {
			return s.Answered(s.Claim, session.ModelAnswered{Call: "m", Cost: 4, ToolCalls: []session.ToolCall{call}})
		},
		func(s session.State) ([]session.Payload, error) { return s.CallNext(s.Claim, session.RiskLow, nil) },
		func(s session.State) ([]session.Payload, error) {
			return s.Returned(s.Claim, session.ToolReturned{ID: "t", Outcome: session.Succeeded, Output: "ok"})
		},
		func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(s.Claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
		},
	} {
		if _, err := s.Update(ctx, id, rule); err != nil {
			return err
		}
	}
	return nil
}

// updates times steps on the real store, the lengths taking turns.
func updates(b *bench, y *yard) error {
	took := make([][]time.Duration, len(lengths))
	for round := range pick(b, 180, 60) {
		for i, ids := range y.ids {
			begin := time.Now()
			if err := turn(b.ctx, y.sessions, ids[round%len(ids)]); err != nil {
				return err
			}
			took[i] = append(took[i], time.Since(begin)/turnUpdates)
		}
	}
	allocs := make([]float64, len(lengths))
	for i, ids := range y.ids {
		var err error
		if allocs[i], err = allocations(20, func(n int) error { return turn(b.ctx, y.sessions, ids[n%len(ids)]) }); err != nil {
			return err
		}
	}
	short := 1000 * load.Percentile(took[0], 50)
	for i, l := range lengths {
		if i == 0 {
			continue
		}
		line := b.report.Add("steps", fmt.Sprintf("update at %s events, against 10", report.Figure(float64(l.events), report.Count)), report.Micros, 1000*load.Percentile(took[i], 50), short).
			RatioAtMost(1.2)
		line.Comment("%.0f allocations, %.0f at 10", allocs[i]/turnUpdates, allocs[0]/turnUpdates)
	}
	say("updates: %s at 10 events", report.Figure(short, report.Micros))
	return nil
}

// nowhere is a log that keeps nothing: on it, a session's own work is all there is.
type nowhere struct{}

func (nowhere) Append(context.Context, session.Batch) error { return nil }

func (nowhere) Read(context.Context, session.ID, int64) iter.Seq2[session.Event, error] {
	return func(func(session.Event, error) bool) {}
}

// updatesAlone is the same without a store, where growth could not hide behind
// the time of a commit.
func updatesAlone(b *bench, _ *yard) error {
	var sessions []*session.Sessions
	id := session.NewID()
	for _, l := range lengths {
		s, err := remembered(b.ctx, id, l.events)
		if err != nil {
			return err
		}
		sessions = append(sessions, s)
	}
	took := make([][]time.Duration, len(lengths))
	for range pick(b, 3000, 1000) {
		for i, s := range sessions {
			begin := time.Now()
			if err := turn(b.ctx, s, id); err != nil {
				return err
			}
			took[i] = append(took[i], time.Since(begin)/turnUpdates)
		}
	}
	b.report.Add("steps", "update at 100,000 events without a store, against 10", report.Micros, 1000*load.Percentile(took[2], 50), 1000*load.Percentile(took[0], 50)).
		RatioAtMost(1.2).Comment("the one of 10 grows to %s while it is measured", report.Figure(float64(7*len(took[0])), report.Count))
	return nil
}

// remembered is a session of n events that exists in the cache only.
func remembered(ctx context.Context, id session.ID, n int64) (*session.Sessions, error) {
	s := session.New(nowhere{})
	book := history.Begin(id, "admin", time.Now())
	book.Grow(n)
	_, err := s.Create(ctx, id, session.Created{Owner: "admin"}, nil)
	for _, e := range book.Events[1:] {
		if err == nil {
			_, err = s.Update(ctx, id, func(session.State) ([]session.Payload, error) { return []session.Payload{e.Payload}, nil })
		}
	}
	return s, err
}

// folds times loading a session that is in no cache, per event. The store remembers the rows of
// short ones, so they are no floor for a long one.
func folds(b *bench, y *yard) error {
	var cost [3]float64
	for i := range lengths {
		id := y.ids[i][0]
		begin, events := time.Now(), int64(0)
		for time.Since(begin) < pick(b, time.Second, 300*time.Millisecond) {
			st, err := session.Fold(b.ctx, y.db, session.State{ID: id})
			if err != nil {
				return err
			}
			events += st.Last
		}
		cost[i] = float64(time.Since(begin).Nanoseconds()) / float64(events) / 1000
	}
	b.report.Add("steps", "cold fold per event at 100,000 events", report.Micros, cost[2], 0).
		AtMost(3).Comment("from rows in memory: %s at 1,000, %s at a few", report.Figure(cost[1], report.Micros), report.Figure(cost[0], report.Micros))
	say("cold fold: %s per event at 100,000", report.Figure(cost[2], report.Micros))
	return nil
}

// allocations counts what the whole program allocates per call.
func allocations(n int, do func(n int) error) (float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		if err := do(i); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), nil
}
