package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/load/process"
)

// coldStarts measures programs that were just started: a server on an empty folder and on one
// that exists, the first turn it is asked for, and deckhand run.
func coldStarts(b *bench) error {
	var empty, stored, turn []time.Duration
	for range pick(b, 7, 3) {
		dir, err := b.folder()
		if err != nil {
			return err
		}
		for _, into := range []*[]time.Duration{&empty, &stored} {
			s, err := load.Serve(b.ctx, b.dir, b.server, dir, nil)
			if err != nil {
				return err
			}
			*into = append(*into, s.Took)
			s.Stop()
		}
		o, err := b.coldOffice()
		if err != nil {
			return err
		}
		begin := time.Now()
		_, err = o.open()
		turn = append(turn, time.Since(begin))
		o.close()
		if err != nil {
			return err
		}
	}
	b.report.Add("cold", "first start on an empty folder to healthy, p50", report.Millis, load.Percentile(empty, 50), 0).AtMost(300)
	b.report.Add("cold", "later start to healthy, p50", report.Millis, load.Percentile(stored, 50), 0).AtMost(300)
	b.report.Add("cold", "first turn after the start of the server, p50", report.Millis, load.Percentile(turn, 50), 0).
		AtMost(100).Comment("nothing is in a cache, no sandbox is prepared")
	return coldRuns(b)
}

// coldRuns times deckhand run: the first start in a data folder and later ones.
func coldRuns(b *bench) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	var later load.Sample
	for i := range pick(b, 11, 5) {
		took, cpu, err := runOnce(b.ctx, b.server, dir)
		if err != nil {
			return err
		}
		if i == 0 {
			b.report.Add("cold", "deckhand run of one command, first start in a data folder", report.Millis, load.Percentile([]time.Duration{took}, 50), 0).
				AtMost(1000).Comment("it prepares what later ones share; processor time %s", report.Figure(float64(cpu.Microseconds()), report.Micros))
			continue
		}
		later.Delays, later.CPU = append(later.Delays, took), later.CPU+cpu
	}
	r := load.Rounds{later}
	b.report.Add("cold", "deckhand run of one command, later starts, p50", report.Millis, r.Delay(50), 0).AtMost(400)
	b.report.Add("cold", "processor time of deckhand run, later starts", report.Millis, r.CPU()/1000, 0).AtMost(200)
	return nil
}

// runOnce is deckhand run with the demo model: a whole start of the program, one command, and its end.
func runOnce(ctx context.Context, program, dir string) (took, cpu time.Duration, err error) {
	program, err = filepath.Abs(program)
	if err != nil {
		return 0, 0, err
	}
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, program, "run", "--data-dir", filepath.Join(dir, "data"), "--model", "scripted/demo", "$ "+load.Command)
	cmd.Dir, cmd.Env = work, load.Environment()
	before, begin := process.TreeCPU(), time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("deckhand run: %w\n%.500s", err, out)
	}
	return time.Since(begin), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + max(process.TreeCPU()-before, 0), nil
}

// firstTurns measures conversations that begin: each needs a sandbox of its own.
func firstTurns(b *bench) error {
	return errors.Join(firstAlone(b), firstAtOnce(b, 100, 110), firstMany(b), crowdOfTurns(b))
}

// firstAlone times first turns one at a time, on a server that has worked before.
func firstAlone(b *bench) error {
	o, err := b.office()
	if err != nil {
		return err
	}
	defer o.close()
	var s load.Sample
	for i := range pick(b, 60, 20) + 5 {
		before, begin := process.TreeCPU(), time.Now()
		if _, err := o.open(); err != nil {
			return err
		}
		if i < 5 { // the first ones warm up
			continue
		}
		s.Delays, s.CPU = append(s.Delays, time.Since(begin)), s.CPU+process.TreeCPU()-before
	}
	r := load.Rounds{s}
	b.report.Add("first", "first turn of a conversation, one at a time, p50", report.Millis, r.Delay(50), 0).
		AtMost(20).Comment("p99 %s", report.Figure(r.Delay(99), report.Millis))
	b.report.Add("first", "processor time of server and sandbox for each first turn, one at a time", report.Millis, r.CPU()/1000, 0).AtMost(12)
	return nil
}

// firstAtOnce begins n conversations at the same moment.
func firstAtOnce(b *bench, n int, least float64) error {
	o, err := b.office()
	if err != nil {
		return err
	}
	defer o.close()
	var all load.Rounds
	for range pick(b, 4, 2) {
		s, err := o.firsts(n, n, time.Minute)
		if err != nil {
			return err
		}
		all = append(all, s)
		if err := o.deleteAll(); err != nil {
			return err
		}
	}
	b.report.Add("first", fmt.Sprintf("first turns, %d conversations that begin at once", n), report.PerSecond, all.Rate(), 0).
		AtLeast(least).Comment("p50 %s, p99 %s, processor time %s each", report.Figure(all.Delay(50), report.Millis), report.Figure(all.Delay(99), report.Millis), report.Figure(all.CPU(), report.Micros))
	return nil
}

// firsts begins n conversations, so many at a time. Their followers leave when the turn is over.
func (o *office) firsts(callers, n int, most time.Duration) (load.Sample, error) {
	before := process.TreeCPU()
	s, err := load.Share(callers, n, most, func(int, int) error {
		c, err := o.open()
		if err == nil {
			c.Close()
		}
		return err
	})
	s.CPU = process.TreeCPU() - before
	return s, err
}

// firstMany begins thousands of conversations, 50 at a time, and looks at what they leave in memory.
func firstMany(b *bench) error {
	o, err := b.office()
	if err != nil {
		return err
	}
	defer o.close()
	s, err := o.firsts(50, pick(b, 4000, 300), 45*time.Second)
	if err != nil {
		return err
	}
	r, name := load.Rounds{s}, report.Figure(float64(len(s.Delays)), report.Count)
	b.report.Add("first", "new conversations, 50 at a time", report.PerSecond, r.Rate(), 0).
		AtLeast(100).Comment("%s of them, which is all or what 45 s allow; p50 %s, p99 %s", name, report.Figure(r.Delay(50), report.Millis), report.Figure(r.Delay(99), report.Millis))
	b.report.Add("first", "processor time of server and sandbox for each first turn, 50 at a time", report.Millis, r.CPU()/1000, 0).AtMost(12)
	b.report.Add("first", "memory of server and sandboxes after "+name+" new conversations", report.Megabytes, process.TreePSS(), 0).
		AtMost(400).Comment("PSS: what processes share is divided among them")
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
	empty, before := o.RSS(b.ctx), o.CPU()
	begin := time.Now()
	_, failures := o.openMany(n)
	took := time.Since(begin)
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	l := b.report.Add("first", fmt.Sprintf("failed turns of %s conversations that begin at once, each with a sandbox of its own", report.Figure(float64(n), report.Count)), report.Count, float64(len(failures)), 0).AtMost(0)
	l.Comment("all had finished after %.1f s, %s of the server's processor time each", took.Seconds(), report.Figure(float64((o.CPU()-before).Microseconds())/float64(n), report.Micros))
	if len(failures) > 0 {
		l.Comment("%v", failures[0])
	}
	b.report.Add("first", fmt.Sprintf("memory of the server for each of %s conversations at once, at its peak", report.Figure(float64(n), report.Count)), report.Kilobytes, (o.Peak()-empty)*1024/float64(n), 0).
		AtMost(500).Comment("%s at its peak, %s before, %s when all had finished", report.Figure(o.Peak(), report.Megabytes), report.Figure(empty, report.Megabytes), report.Figure(o.RSS(b.ctx), report.Megabytes))
	say("%d at once: %.1f s, %d failed", n, took.Seconds(), len(failures))
	return nil
}
