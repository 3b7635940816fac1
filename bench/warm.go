package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"time"

	"deckhand/bench/history"
	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/load/process"
	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
)

// warmTurns measures what people wait for in a conversation whose sandbox is up: a message, a
// model that has one command run, its result, and the model's answer. The model answers at
// once, so that all the time is ours.
func warmTurns(b *bench) error {
	return errors.Join(oneTurn(b), manyTurns(b, 50, 400), manyTurns(b, 200, 480), longSteps(b))
}

// lone is how many conversations a single person has one turn after the other
// in: with one alone, its history would become long while it is measured.
const lone = 10

// oneTurn times turns one at a time, with the sandbox up, against the sum of
// what they consist of.
func oneTurn(b *bench) error {
	o, err := b.office()
	if err != nil {
		return err
	}
	defer o.close()
	chats, failures := o.openMany(lone)
	if err := errors.Join(failures...); err != nil {
		return err
	}
	commits, err := o.commitsOf(chats)
	if err != nil {
		return err
	}
	p, err := b.parts(1, int(math.Round(commits)))
	if err != nil {
		return err
	}
	defer p.close()
	single, err := openSingle(b, o)
	if err != nil {
		return err
	}
	defer single.close()
	steps := []func() error{
		nil, // the turn
		single.ask, func() error { return p.appendAll(0) }, func() error { return p.askAll(0) },
		single.rpc(p), func() error { return single.shell.run(load.Command) }, single.deliver,
	}
	took := make([][]time.Duration, len(steps))
	n := pick(b, 300, 60)
	for i := range n {
		steps[0] = chats[i%lone].Turn
		for at, do := range steps {
			begin := time.Now()
			if err := do(); err != nil {
				return err
			}
			took[at] = append(took[at], time.Since(begin))
		}
	}
	p50 := func(at int) float64 { return load.Percentile(took[at], 50) }
	one := p50(2) / math.Max(math.Round(commits), 1)
	parts := []report.Part{
		{Name: "HTTP", Millis: p50(1), What: "one request and its answer on an open connection"},
		{Name: "append", Millis: p50(2), What: fmt.Sprintf("%.1f durable transactions", commits)},
		{Name: "model call", Millis: p50(3), What: "two requests with the whole conversation, streamed answers"},
		{Name: "rpc", Millis: p50(4), What: "to the runner in the sandbox and back, twice: the command and its acknowledgement"},
		{Name: "shell", Millis: p50(5), What: "the command in a shell that is up"},
		{Name: "delivery", Millis: max(p50(6)-one, 0), What: "from the commit of the last event to its follower"},
	}
	sum := 0.0
	for _, part := range parts {
		sum += part.Millis
	}
	b.report.Parts = append(parts, report.Part{Name: "rest", Millis: max(p50(0)-sum, 0), What: "the loop itself: deciding, waking, scheduling, waiting for a processor"})
	b.report.Add("warm", "a turn with one command, one at a time, p50, against the sum of its parts", report.Millis, p50(0), sum).
		AtMost(10).RatioAtMost(1.5).Comment("p99 %s, n=%d", report.Figure(load.Percentile(took[0], 99), report.Millis), n)
	say("one at a time: %s, its parts %s", report.Figure(p50(0), report.Millis), report.Figure(sum, report.Millis))
	return nil
}

// single holds the parts of a turn that are measured one by one.
type single struct {
	health []byte
	link   *load.Link
	shell  *liveShell
	yard   *yard
	hub    *hub
	id     session.ID
	in     *load.Stream
	b      *bench
}

func openSingle(b *bench, o *office) (_ *single, err error) {
	s := &single{b: b, health: load.Message("GET", "/health", o.Addr, "", "")}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.link, err = load.Dial(o.Addr); err != nil {
		return nil, err
	}
	if s.shell, err = openShell(); err != nil {
		return nil, err
	}
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(b.ctx, filepath.Join(dir, "single.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	s.yard = &yard{db: db, sessions: session.New(db)}
	if s.hub, err = openHub(s.yard); err != nil {
		return nil, err
	}
	if s.id, err = history.Store(b.ctx, db, "admin", 10); err != nil {
		return nil, err
	}
	s.in, err = s.hub.follow(b.ctx, s.yard, s.id)
	return s, err
}

func (s *single) close() {
	if s.in != nil {
		s.in.Close()
	}
	if s.hub != nil {
		s.hub.close()
	}
	if s.yard != nil {
		_ = s.yard.db.Close()
	}
	if s.shell != nil {
		s.shell.close()
	}
	if s.link != nil {
		s.link.Close()
	}
}

func (s *single) ask() error {
	_, err := s.link.Ask(s.health)
	return err
}

// rpc asks the runner twice for next to nothing: to forget a command that it does not know.
func (s *single) rpc(p *parts) func() error {
	return func() error {
		return errors.Join(p.boxes[0].Ack(p.ctx, "none"), p.boxes[0].Ack(p.ctx, "none"))
	}
}

func (s *single) deliver() error {
	_, err := deliver(s.b.ctx, s.yard, s.id, s.in)
	return err
}

// commitsOf is how many durable transactions one turn makes.
func (o *office) commitsOf(chats []*load.Chat) (float64, error) {
	before, err := o.metric("deckhand_store_commits_total")
	if err != nil {
		return 0, err
	}
	for _, c := range chats {
		if err := c.Turn(); err != nil {
			return 0, err
		}
	}
	after, err := o.metric("deckhand_store_commits_total")
	return (after - before) / float64(len(chats)), err
}

// manyTurns counts turns while n conversations work at once. The floor is as
// many callers that do nothing but the parts of a turn.
func manyTurns(b *bench, n int, least float64) error {
	o, err := b.office()
	if err != nil {
		return err
	}
	defer o.close()
	chats, failures := o.openMany(n)
	if err := errors.Join(failures...); err != nil {
		return err
	}
	commits, err := o.commitsOf(chats[:lone])
	if err != nil {
		return err
	}
	memory := process.TreePSS()
	p, err := b.parts(n, int(math.Round(commits)))
	if err != nil {
		return err
	}
	defer p.close()
	if b.profiles != "" { // over all rounds; in those of the floor the server rests
		var saved sync.WaitGroup
		defer saved.Wait()
		saved.Go(func() { o.saveProfile(b.profiles, fmt.Sprintf("warm turns, %d at once", n), pick(b, 20, 3)) })
	}
	var ours, floor load.Rounds
	for round := range pick(b, 4, 2) {
		during := pick(b, 3*time.Second, time.Second)
		before := process.TreeCPU()
		s, err := load.Hammer(n, during, func(caller int) error { return chats[caller].Turn() })
		if err != nil {
			return err
		}
		s.CPU = process.TreeCPU() - before
		f, err := load.Hammer(n, during, p.all)
		if err != nil {
			return err
		}
		ours, floor = append(ours, s), append(floor, f)
		say("%d at once, round %d: %s turns, their parts alone %s", n, round+1, report.Figure(s.Rate(), report.PerSecond), report.Figure(f.Rate(), report.PerSecond))
	}
	b.report.Add("warm", fmt.Sprintf("turns, %d conversations at once", n), report.PerSecond, ours.Rate(), floor.Rate()).PairedBy(load.Paired(ours, floor)).
		AtLeast(least).Comment("p50 %s, p99 %s; parts p50 %s", report.Figure(ours.Delay(50), report.Millis), report.Figure(ours.Delay(99), report.Millis), report.Figure(floor.Delay(50), report.Millis))
	b.report.Add("warm", fmt.Sprintf("processor time of server and sandboxes for each turn, %d at once", n), report.Micros, ours.CPU(), 0).
		AtMost(2500).Comment("the model and the client are not in it")
	b.report.Add("warm", fmt.Sprintf("memory of server and sandboxes with %d conversations after a turn", n), report.Megabytes, memory, 0).
		AtMost(40 + 0.8*float64(n)).Comment("PSS: what processes share is divided among them")
	return nil
}
