package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

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
	p, err := o.parts(b, 1, int(math.Round(commits)))
	if err != nil {
		return err
	}
	defer p.close()
	var took [4][]time.Duration // of a turn, its appends, its requests, its command
	for i := range pick(b, 300, 60) {
		turn := chats[i%lone].turn
		for at, do := range [4]func(int) error{func(int) error { return turn() }, p.appendAll, p.askAll, p.runAll} {
			begin := time.Now()
			if err := do(0); err != nil {
				return err
			}
			took[at] = append(took[at], time.Since(begin))
		}
	}
	p50 := func(at int) float64 { return percentile(took[at], 50) }
	b.report.add("turns", "a turn with one command, one at a time, p50, against the sum of its parts", millis, p50(0), p50(1)+p50(2)+p50(3)).
		ratioAtMost(2).
		note("p99 %s; %.1f durable appends %s, 2 model round trips %s, exec %s", figure(percentile(took[0], 99), millis), commits, figure(p50(1), millis), figure(p50(2), millis), figure(p50(3), millis))
	say("one at a time: %s", figure(p50(0), millis))
	return nil
}

// commitsOf is how many durable transactions one turn makes.
func (o *office) commitsOf(chats []*chat) (float64, error) {
	before, err := o.metric("deckhand_store_commits_total")
	if err != nil {
		return 0, err
	}
	for _, c := range chats {
		if err := c.turn(); err != nil {
			return 0, err
		}
	}
	after, err := o.metric("deckhand_store_commits_total")
	return (after - before) / float64(len(chats)), err
}

// atOnce is how many conversations work at the same time.
const atOnce = 50

// manyTurns counts turns while many conversations work at once. The floor is as
// many callers that do nothing but the parts of a turn.
func manyTurns(b *bench) error {
	o, err := b.office()
	if err != nil {
		return err
	}
	defer o.close()
	chats, failures := o.openMany(atOnce)
	if err := errors.Join(failures...); err != nil {
		return err
	}
	commits, err := o.commitsOf(chats[:lone])
	if err != nil {
		return err
	}
	p, err := o.parts(b, atOnce, int(math.Round(commits)))
	if err != nil {
		return err
	}
	defer p.close()
	var ours, floor rounds
	for round := range pick(b, 4, 2) {
		during := pick(b, 3*time.Second, time.Second)
		before := o.cpu()
		s, err := hammer(atOnce, during, func(caller int) error { return chats[caller].turn() })
		if err != nil {
			return err
		}
		s.cpu = o.cpu() - before
		f, err := hammer(atOnce, during, p.all)
		if err != nil {
			return err
		}
		ours, floor = append(ours, s), append(floor, f)
		say("round %d: %s turns, their parts alone %s", round+1, figure(s.rate(), perSecond), figure(f.rate(), perSecond))
	}
	b.report.add("turns", fmt.Sprintf("turns, %d conversations at once", atOnce), perSecond, ours.rate(), floor.rate()).pairedBy(paired(ours, floor)).
		require(ours.rate() >= 400, ">= 400/s").
		note("p50 %s, p99 %s; parts p50 %s", figure(ours.delay(50), millis), figure(ours.delay(99), millis), figure(floor.delay(50), millis))
	b.report.add("turns", fmt.Sprintf("processor time of the server for each turn, %d at once", atOnce), micros, ours.cpu(), 0).
		note("the sandbox, the model and the client beside it are not in it")
	return nil
}

// crowdOfTurns starts many conversations at the same moment, each with a sandbox
// of its own, and wants every one of them to finish its turn.
func crowdOfTurns(b *bench) error {
	n := pick(b, 1000, 200)
	o, err := b.office()
	if err != nil {
		return err
	}
	defer o.close()
	empty, before := o.rss(b.ctx), o.cpu()
	begin := time.Now()
	_, failures := o.openMany(n)
	took := time.Since(begin)
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	l := b.report.add("turns", fmt.Sprintf("failed turns of %s conversations that begin at once, each with a sandbox of its own", figure(float64(n), count)), count, float64(len(failures)), 0).atMost(0)
	l.note("all had finished after %.1f s, %s of the server's processor time each", took.Seconds(), figure(float64((o.cpu()-before).Microseconds())/float64(n), micros))
	if len(failures) > 0 {
		l.note("%v", failures[0])
	}
	b.report.add("turns", fmt.Sprintf("memory of the server for each of %s conversations at once, at its peak", figure(float64(n), count)), kilobytes, (o.rssPeak()-empty)*1024/float64(n), 0).
		atMost(500).note("%s at its peak, %s before, %s when all had finished", figure(o.rssPeak(), megabytes), figure(empty, megabytes), figure(o.rss(b.ctx), megabytes))
	say("%d at once: %.1f s, %d failed", n, took.Seconds(), len(failures))
	return nil
}
