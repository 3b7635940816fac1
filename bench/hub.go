package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"deckhand/bench/report"
	"deckhand/internal/live"
	"deckhand/internal/load"
	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// hub serves a yard's sessions to followers, with the part of the server that
// does so and nothing else: no agent answers what is appended.
type hub struct {
	web  *http.Server
	addr string
}

// openHub must be called before the yard's first change.
func openHub(y *yard) (*hub, error) {
	feed := live.New(y.db, frames)
	y.sessions.Observe(feed)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		after, err := live.Position(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = live.ServeSSE(w, r, feed, session.ID(r.URL.Path[1:]), after, live.Options{})
	}
	h := &hub{addr: l.Addr().String(), web: &http.Server{Handler: http.HandlerFunc(serve), ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = h.web.Serve(l) }()
	return h, nil
}

func (h *hub) close() { _ = h.web.Close() }

// frames is how the server words events for live readers.
func frames(id session.ID, e session.Event) (live.Frame, bool, error) {
	f, err := v0.Encode(id, e)
	if err != nil || f.Kind == v0.None {
		return live.Frame{}, false, err
	}
	return live.Frame{Data: f.JSON}, true, nil
}

// latencies times an event from the call that appends it to the follower that
// reads it, the lengths taking turns. The commit is part of it.
func (h *hub) latencies(b *bench, y *yard) error {
	readers := make([][]*load.Stream, len(lengths))
	for i, ids := range y.ids {
		for _, id := range ids {
			s, err := h.follow(b.ctx, y, id)
			if err != nil {
				return err
			}
			defer s.Close()
			readers[i] = append(readers[i], s)
		}
	}
	took := make([][]time.Duration, len(lengths))
	for round := range pick(b, 180, 60) {
		for i, ids := range y.ids {
			n := round % len(ids)
			d, err := deliver(b.ctx, y, ids[n], readers[i][n])
			if err != nil {
				return err
			}
			took[i] = append(took[i], d)
		}
	}
	short := 1000 * load.Percentile(took[0], 50)
	for i, l := range lengths {
		if i == 0 {
			continue
		}
		b.report.Add("steps", fmt.Sprintf("append to delivery at %s events, against 10", report.Figure(float64(l.events), report.Count)), report.Micros, 1000*load.Percentile(took[i], 50), short).
			RatioAtMost(1.2).Comment("p99 %s, %s at 10", report.Figure(1000*load.Percentile(took[i], 99), report.Micros), report.Figure(1000*load.Percentile(took[0], 99), report.Micros))
	}
	say("append to delivery: %s at 10 events", report.Figure(short, report.Micros))
	return nil
}

// follow opens a follower that has seen all there is.
func (h *hub) follow(ctx context.Context, y *yard, id session.ID) (*load.Stream, error) {
	st, err := y.sessions.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	return load.Follow(h.addr, "/"+string(id), "", st.Last)
}

// deliver appends one event and waits until the follower has it.
func deliver(ctx context.Context, y *yard, id session.ID, to *load.Stream) (time.Duration, error) {
	begin := time.Now()
	st, err := y.sessions.Update(ctx, id, func(session.State) ([]session.Payload, error) {
		return []session.Payload{session.Noted{ID: "n", Message: "A line of what happened."}}, nil
	})
	if err != nil {
		return 0, err
	}
	got, err := to.Next()
	if err == nil && got != st.Last {
		err = fmt.Errorf("event %d was appended and event %d delivered", st.Last, got)
	}
	return time.Since(begin), err
}
