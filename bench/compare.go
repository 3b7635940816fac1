package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/load/process"
)

// contest is one thing that two programs do in turns. It returns figures by
// name, the same ones each time.
type contest struct {
	name string
	run  func(b *bench, o *office, round int) ([]result, error)
}

// result is a figure of one side in one round. Less is better unless it is a rate.
type result struct {
	name, unit string
	value      float64
}

func contests(b *bench) []contest {
	return []contest{
		{name: "warm turns, one at a time", run: warm(1, lone, 25)},
		{name: "warm turns, 50 at once", run: warm(50, 50, 25)},
		{name: "warm turns, 200 at once", run: warm(200, 200, 10)},
		{name: "first turns, 100 at once", run: manyFirst(100)},
		{name: "creates, 64 at once", run: creates(64, pick(b, 3*time.Second, time.Second))},
		{name: "deckhand run", run: runs},
	}
}

// compare measures the program against a base, in turns, and fails when one of
// the figures is worse beyond doubt.
func (b *bench) compare(base, only string) error {
	for _, c := range contests(b) {
		if only != "" && only != c.name {
			continue
		}
		fmt.Printf("\n== %s\n", c.name)
		if err := b.contest(c, base); err != nil {
			if b.ctx.Err() != nil {
				return errors.New("interrupted")
			}
			b.report.Broken(c.name, err)
		}
	}
	return nil
}

func (b *bench) contest(c contest, base string) error {
	sides := [2]*office{}
	for i, program := range [2]string{b.server, base} {
		side := *b
		side.server = program
		if i == 1 {
			side.profiles = ""
		}
		o, err := side.office()
		if err != nil {
			return err
		}
		defer o.close()
		defer o.Thaw()
		sides[i] = o
		o.Freeze()
	}
	var order []result
	ratios, values := map[string][]float64{}, map[string][2][]float64{}
	for round := range pick(b, 10, 8) {
		var of [2][]result
		for turn := range 2 {
			i := (turn + round) % 2
			sides[i].Thaw()
			if i == 0 && round == 1 && b.profiles != "" {
				go sides[i].saveProfile(b.profiles, c.name, 2)
			}
			got, err := c.run(b, sides[i], round)
			sides[i].Freeze()
			if err != nil {
				return err
			}
			of[i] = got
		}
		order = of[0]
		for n, r := range of[0] {
			v := values[r.name]
			v[0], v[1] = append(v[0], r.value), append(v[1], of[1][n].value)
			values[r.name] = v
			ratios[r.name] = append(ratios[r.name], r.value/of[1][n].value)
		}
	}
	for _, r := range order {
		ratio, low, high := interval(ratios[r.name])
		v := values[r.name]
		b.report.Add(c.name, r.name, r.unit, load.Median(v[0]), load.Median(v[1])).PairedBy(ratio).
			Require(!regressed(r.unit, low, high), "no regression").Comment("99 %% interval of the ratio: %.2f to %.2f", low, high)
		say("%-40s %12s  base %12s  ratio %.2f (%.2f to %.2f)", r.name, report.Figure(load.Median(v[0]), r.unit), report.Figure(load.Median(v[1]), r.unit), ratio, low, high)
	}
	return nil
}

// noise is a change that order and placement in memory can cause.
const noise = 0.02

// regressed reports whether the whole interval of the ratio to the base lies on the worse side.
func regressed(unit string, low, high float64) bool {
	if unit == report.PerSecond {
		return high < 1-noise
	}
	return low > 1+noise
}

// interval is the mean of ratios on a logarithmic scale, and the bounds between
// which it lies in 99 of 100 repetitions (Student's t): of twenty figures, hardly one
// is blamed for nothing.
func interval(ratios []float64) (mean, low, high float64) {
	n := float64(len(ratios))
	var sum, squares float64
	for _, r := range ratios {
		sum += math.Log(r)
	}
	for _, r := range ratios {
		squares += math.Pow(math.Log(r)-sum/n, 2)
	}
	half := student(len(ratios)-1) * math.Sqrt(squares/(n-1)/n)
	return math.Exp(sum / n), math.Exp(sum/n - half), math.Exp(sum/n + half)
}

// student is the 99.5 % quantile of Student's t for so many degrees of freedom.
func student(degrees int) float64 {
	table := []float64{math.Inf(1), 63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95}
	return table[min(max(degrees, 0), len(table)-1)]
}

// warm lets callers have so many turns in each of some new conversations. The number is fixed, not the time: each request to the
// model contains the whole conversation, and the faster side must not pay for its speed with longer ones.
func warm(callers, conversations, turns int) func(*bench, *office, int) ([]result, error) {
	return func(_ *bench, o *office, _ int) ([]result, error) {
		chats, failures := o.openMany(conversations)
		if err := errors.Join(failures...); err != nil {
			return nil, err
		}
		each := conversations / callers
		before := process.TreeCPU()
		s, err := load.Repeat(callers, each*turns, func(caller, i int) error { return chats[caller*each+i%each].Turn() })
		if err != nil {
			return nil, err
		}
		s.CPU = process.TreeCPU() - before
		return results(s, "turns"), o.deleteAll()
	}
}

// results are the usual figures of a sample.
func results(s load.Sample, what string) []result {
	r := load.Rounds{s}
	return []result{
		{what + " per second", report.PerSecond, s.Rate()}, {what + ", p50", report.Millis, r.Delay(50)}, {what + ", p99", report.Millis, r.Delay(99)},
		{"processor time per " + what[:len(what)-1] + ", server and sandboxes", report.Micros, r.CPU()},
	}
}

// manyFirst begins n conversations at once, waits for their first turns, and deletes them.
func manyFirst(n int) func(*bench, *office, int) ([]result, error) {
	return func(_ *bench, o *office, _ int) ([]result, error) {
		s, err := o.firsts(n, n, time.Minute)
		if err != nil {
			return nil, err
		}
		return results(s, "turns"), o.deleteAll()
	}
}

func creates(n int, during time.Duration) func(*bench, *office, int) ([]result, error) {
	return func(_ *bench, o *office, _ int) ([]result, error) {
		s := &side{server: o.Server}
		defer s.close()
		if err := s.open(duel{path: creationPath, body: withNothing, clients: n, lean: true}, o.keys); err != nil {
			return nil, err
		}
		before := process.TreeCPU()
		got, err := load.Hammer(n, during, func(caller int) error { return s.askers[caller].ask() })
		got.CPU = process.TreeCPU() - before
		return results(got, "creates"), err
	}
}

// runs times deckhand run with the demo model.
func runs(b *bench, o *office, round int) ([]result, error) {
	dir := filepath.Join(b.dir, "run-"+filepath.Base(o.Dir))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var s load.Sample
	for i := range 3 {
		took, cpu, err := runOnce(b.ctx, o.Program(), dir)
		if err != nil {
			return nil, err
		}
		if round == 0 && i == 0 {
			continue // the first start prepares what later ones share
		}
		s.Delays, s.CPU, s.Took = append(s.Delays, took), s.CPU+cpu, s.Took+took
	}
	r := load.Rounds{s}
	return []result{{"run, p50", report.Millis, r.Delay(50)}, {"processor time per run", report.Micros, r.CPU()}}, nil
}

// saveProfile writes a profile of the next seconds.
func (o *office) saveProfile(dir, name string, seconds int) {
	res, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", o.metrics, seconds))
	if err != nil {
		say("no profile: %v", err)
		return
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "-")+".pprof"), text, 0o644)
	}
	if err != nil {
		say("no profile: %v", err)
	}
}
