package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"deckhand/bench/floor"
	"deckhand/bench/history"
	"deckhand/bench/report"
	"deckhand/internal/load"
)

// What is sent. The floor gets the same bytes.
const (
	creationPath = "/api/conversations"
	settingsPath = "/api/settings"
	withMessage  = `{"initial_user_msg":"` + history.FirstMessage + `"}`
	withNothing  = `{}`
	someSettings = `{"llm_model":"scripted/demo","max_iterations":100,"git_user_name":"Maria Example"}`
)

// duel is one request measured on both sides.
type duel struct {
	name       string
	path, body string
	clients    int
	loose      bool // the floor's rows cannot be found again
	lean       bool // clients that only move bytes, instead of Go's own
	rounds     int
	during     time.Duration
	target     func(l *report.Line)
}

// requests compares the server with the bare handler.
func requests(b *bench) error {
	long, short := pick(b, 2*time.Second, time.Second), pick(b, time.Second, 500*time.Millisecond)
	many, few := pick(b, 5, 3), pick(b, 2, 1)
	most := func(l *report.Line) { l.RatioAtLeast(0.7) }
	// A request alone is to be faster than that of the fastest peer, which is not durable.
	quick := func(l *report.Line) { l.AtMost(1) }
	duels := []duel{
		{name: "create with a message", path: creationPath, body: withMessage, clients: callers, rounds: many, during: long, target: most},
		{name: "create with a message, against rows without a key", path: creationPath, body: withMessage, clients: callers, rounds: few, during: long, loose: true, target: func(l *report.Line) { l.RatioAtLeast(0.6) }},
		{name: "create with a message, lean clients", path: creationPath, body: withMessage, clients: callers, rounds: few, during: long, lean: true, target: most},
		{name: "create with {}", path: creationPath, body: withNothing, clients: callers, rounds: few, during: short, target: most},
		{name: "store settings", path: settingsPath, body: someSettings, clients: callers, rounds: few, during: short, target: most},
		{name: "create with a message", path: creationPath, body: withMessage, clients: 1, rounds: few, during: short, target: quick},
		{name: "create with {}", path: creationPath, body: withNothing, clients: 1, rounds: few, during: short, target: quick},
		{name: "store settings", path: settingsPath, body: someSettings, clients: 1, rounds: few, during: short, target: quick},
	}
	for i, d := range duels {
		ours, floor, err := b.fight(d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		d.record(b.report, ours, floor, i == 0)
	}
	return errors.Join(afterBurst(b), sameUser(b))
}

// record makes the lines of a duel; the first of them is the one that counts.
func (d duel) record(r *report.Report, ours, floor load.Rounds, counts bool) {
	if d.clients == 1 {
		d.target(r.Add("http", d.name+", one at a time, p50", report.Millis, ours.Delay(50), floor.Delay(50)).
			Comment("p99 %s, floor %s", report.Figure(ours.Delay(99), report.Millis), report.Figure(floor.Delay(99), report.Millis)))
		return
	}
	d.target(r.Add("http", fmt.Sprintf("%s, %d at once", d.name, d.clients), report.PerSecond, ours.Rate(), floor.Rate()).PairedBy(load.Paired(ours, floor)).
		Comment("p50 %s, p99 %s; floor p50 %s, p99 %s; cpu %s, floor %s", report.Figure(ours.Delay(50), report.Millis), report.Figure(ours.Delay(99), report.Millis),
			report.Figure(floor.Delay(50), report.Millis), report.Figure(floor.Delay(99), report.Millis), report.Figure(ours.CPU(), report.Micros), report.Figure(floor.CPU(), report.Micros)))
	if counts {
		r.Add("http", fmt.Sprintf("%s, %d at once, p99", d.name, d.clients), report.Millis, ours.Delay(99), floor.Delay(99)).AtMost(20)
		r.Add("http", d.name+", processor time of the server for each", report.Micros, ours.CPU(), floor.CPU()).
			RatioAtMost(1.5).Comment("including the work of agents at that time, and the log")
	}
}

// side is one of the two in a duel, with its connections open.
type side struct {
	name   string
	server *load.Server
	askers []asker
	got    load.Rounds
}

// fight lets both take turns, so that what else the machine does hits both. Who
// is not measured is frozen: the conversations that our server still works on
// must not slow the floor down, which would make us look good.
func (b *bench) fight(d duel) (ours, other load.Rounds, err error) {
	us, keys, err := b.fresh()
	if err != nil {
		return nil, nil, err
	}
	defer us.Stop()
	them, err := b.bare(d.loose)
	if err != nil {
		return nil, nil, err
	}
	defer them.Stop()
	sides := []*side{{name: "ours", server: us}, {name: "floor", server: them}}
	for i, s := range sides {
		if err := s.open(d, [][]string{keys, {floor.Key}}[i]); err != nil {
			return nil, nil, err
		}
		defer s.close()
	}
	for round := range d.rounds + 1 {
		during := d.during
		if round == 0 {
			during = 300 * time.Millisecond // to warm up
		}
		for i := range sides { // A B, then B A
			s, other := sides[(round+i)%2], sides[(round+i+1)%2]
			got, err := s.play(other, during)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				s.got = append(s.got, got)
			}
		}
		if round > 0 {
			say("%s, %d clients, round %d: ours %s, floor %s", d.name, d.clients, round,
				report.Figure(sides[0].got[round-1].Rate(), report.PerSecond), report.Figure(sides[1].got[round-1].Rate(), report.PerSecond))
		}
	}
	return sides[0].got, sides[1].got, nil
}

// open connects the clients. Each has its share of the users, so that none of them meets the
// limit of its requests.
func (s *side) open(d duel, keys []string) error {
	for i := range d.clients {
		each := max(len(keys)/d.clients, 1)
		from := i * each % len(keys)
		a, err := newAsker(d.lean, s.server.Addr, d.path, keys[from:from+each], d.body)
		if err != nil {
			return err
		}
		s.askers = append(s.askers, a)
	}
	return nil
}

func (s *side) close() {
	for _, a := range s.askers {
		a.close()
	}
}

func (s *side) play(other *side, during time.Duration) (load.Sample, error) {
	other.server.Freeze()
	defer other.server.Thaw()
	before := s.server.CPU()
	got, err := load.Hammer(len(s.askers), during, func(i int) error { return s.askers[i].ask() })
	got.CPU = s.server.CPU() - before
	return got, err
}

// afterBurst makes many conversations, whose agents all want to start, and looks at what
// other users notice of it.
func afterBurst(b *bench) error {
	n := pick(b, 10_000, 2_000)
	us, keys, err := b.fresh("--sandbox", "local")
	if err != nil {
		return err
	}
	defer us.Stop()
	chat, err := load.Open(us.Addr, us.Key, "$ "+load.Command)
	if chat != nil {
		defer chat.Close()
		defer chat.Delete()
	}
	if err != nil {
		return err
	}
	s := &side{name: "ours", server: us}
	d := duel{path: creationPath, body: withMessage, clients: callers}
	defer s.close()
	if err := s.open(d, keys); err != nil {
		return err
	}
	create := func(caller, _ int) error { return s.askers[caller].ask() }
	if _, err := load.Share(callers, n, time.Minute, create); err != nil {
		return err
	}
	begin := time.Now()
	if err := chat.Turn(); err != nil {
		return err
	}
	turn := time.Since(begin)
	if _, err := load.Share(callers, n, time.Minute, create); err != nil {
		return err
	}
	after, err := load.Share(callers, n/4, time.Minute, create)
	if err != nil {
		return err
	}
	all := report.Figure(float64(n), report.Count)
	b.report.Add("http", "create right after "+all+" others, 64 at once, p99", report.Millis, load.Rounds{after}.Delay(99), 0).
		AtMost(20).Comment("%s", report.Figure(after.Rate(), report.PerSecond))
	b.report.Add("http", "a turn of another user right after "+all+" creates", report.Millis, load.Percentile([]time.Duration{turn}, 50), 0).
		AtMost(1000).Comment("a second is what a person notices; a single turn, whose sandbox is up")
	return nil
}

// sameUser stores settings of one user from all clients at once, as many as the limits let
// through: they exclude each other, and all must be stored in the end.
func sameUser(b *bench) error {
	us, _, err := b.fresh()
	if err != nil {
		return err
	}
	defer us.Stop()
	keys, err := us.AdminKeys()
	if err != nil {
		return err
	}
	s := &side{name: "ours", server: us}
	defer s.close()
	if err := s.open(duel{path: settingsPath, body: someSettings, clients: callers}, keys); err != nil {
		return err
	}
	var refused atomic.Int64
	got, err := load.Share(callers, 360, time.Minute, func(caller, _ int) error {
		err := s.askers[caller].ask()
		var status *load.StatusError
		if errors.As(err, &status) {
			refused.Add(1)
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("settings of one user: %w", err)
	}
	b.report.Add("http", "store settings, all one user, 64 at once", report.PerSecond, got.Rate(), 0).
		Require(refused.Load() == 0, "none refused").Comment("%d of %d refused, p99 %s", refused.Load(), len(got.Delays), report.Figure(load.Rounds{got}.Delay(99), report.Millis))
	return nil
}
