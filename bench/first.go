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
		o, err := b.office()
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
	b.report.add("cold", "first start on an empty folder to healthy, p50", millis, load.Percentile(empty, 50), 0).atMost(300)
	b.report.add("cold", "later start to healthy, p50", millis, load.Percentile(stored, 50), 0).atMost(300)
	b.report.add("cold", "first turn after the start of the server, p50", millis, load.Percentile(turn, 50), 0).
		atMost(100).note("nothing is in a cache, no sandbox is prepared")
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
			b.report.add("cold", "deckhand run of one command, first start in a data folder", millis, load.Percentile([]time.Duration{took}, 50), 0).
				atMost(1000).note("it prepares what later ones share; processor time %s", figure(float64(cpu.Microseconds()), micros))
			continue
		}
		later.Delays, later.CPU = append(later.Delays, took), later.CPU+cpu
	}
	r := load.Rounds{later}
	b.report.add("cold", "deckhand run of one command, later starts, p50", millis, r.Delay(50), 0).atMost(400)
	b.report.add("cold", "processor time of deckhand run, later starts", millis, r.CPU()/1000, 0).atMost(200)
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
	b.report.add("first", "first turn of a conversation, one at a time, p50", millis, r.Delay(50), 0).
		atMost(20).note("p99 %s", figure(r.Delay(99), millis))
	b.report.add("first", "processor time of server and sandbox for each first turn, one at a time", millis, r.CPU()/1000, 0).atMost(12)
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
	b.report.add("first", fmt.Sprintf("first turns, %d conversations that begin at once", n), perSecond, all.Rate(), 0).
		atLeast(least).note("p50 %s, p99 %s, processor time %s each", figure(all.Delay(50), millis), figure(all.Delay(99), millis), figure(all.CPU(), micros))
	return nil
}

// firsts begins n conversations, so many at a time.
func (o *office) firsts(callers, n int, most time.Duration) (load.Sample, error) {
	before := process.TreeCPU()
	s, err := load.Share(callers, n, most, func(int, int) error {
		_, err := o.open()
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
	s, err := o.firsts(50, pick(b, 4000, 300), time.Minute)
	if err != nil {
		return err
	}
	r, name := load.Rounds{s}, figure(float64(len(s.Delays)), count)
	b.report.add("first", "new conversations, 50 at a time", perSecond, r.Rate(), 0).
		atLeast(100).note("%s of them, which is all or what a minute allows; p50 %s, p99 %s", name, figure(r.Delay(50), millis), figure(r.Delay(99), millis))
	b.report.add("first", "processor time of server and sandbox for each first turn, 50 at a time", millis, r.CPU()/1000, 0).atMost(12)
	b.report.add("first", "memory of server and sandboxes after "+name+" new conversations", megabytes, process.TreePSS(), 0).
		atMost(400).note("PSS: what processes share is divided among them")
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
	l := b.report.add("first", fmt.Sprintf("failed turns of %s conversations that begin at once, each with a sandbox of its own", figure(float64(n), count)), count, float64(len(failures)), 0).atMost(0)
	l.note("all had finished after %.1f s, %s of the server's processor time each", took.Seconds(), figure(float64((o.CPU()-before).Microseconds())/float64(n), micros))
	if len(failures) > 0 {
		l.note("%v", failures[0])
	}
	b.report.add("first", fmt.Sprintf("memory of the server for each of %s conversations at once, at its peak", figure(float64(n), count)), kilobytes, (o.Peak()-empty)*1024/float64(n), 0).
		atMost(500).note("%s at its peak, %s before, %s when all had finished", figure(o.Peak(), megabytes), figure(empty, megabytes), figure(o.RSS(b.ctx), megabytes))
	say("%d at once: %.1f s, %d failed", n, took.Seconds(), len(failures))
	return nil
}
