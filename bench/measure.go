package main

import (
	"slices"
	"sync"
	"time"
)

// sample is what callers did in one round.
type sample struct {
	took   time.Duration
	delays []time.Duration
	cpu    time.Duration // of the server during the sample, where there is one
}

func (s sample) rate() float64 { return float64(len(s.delays)) / s.took.Seconds() }

// hammer lets each caller do one thing after the other until the time is over.
// The first error ends the round.
func hammer(callers int, during time.Duration, do func(caller int) error) (sample, error) {
	delays := make([][]time.Duration, callers)
	failed := make(chan error, callers)
	var wait sync.WaitGroup
	begin := time.Now()
	for caller := range callers {
		wait.Go(func() {
			for at := time.Now(); at.Sub(begin) < during && len(failed) == 0; {
				if err := do(caller); err != nil {
					failed <- err
					return
				}
				now := time.Now()
				delays[caller] = append(delays[caller], now.Sub(at))
				at = now
			}
		})
	}
	wait.Wait()
	s := sample{took: time.Since(begin), delays: slices.Concat(delays...)}
	select {
	case err := <-failed:
		return s, err
	default:
		return s, nil
	}
}

// rounds is the samples of one contender over a whole measurement.
type rounds []sample

// rate is the median of the rounds' rates.
func (r rounds) rate() float64 {
	var rates []float64
	for _, s := range r {
		rates = append(rates, s.rate())
	}
	return median(rates)
}

// paired is the median of the ratios of the rounds. A round and its counterpart
// are neighbours in time, so that what else the machine did hit both; medians of
// each side alone may come from different moments.
func paired(ours, floor rounds) float64 {
	var ratios []float64
	for i := range min(len(ours), len(floor)) {
		ratios = append(ratios, ours[i].rate()/floor[i].rate())
	}
	return median(ratios)
}

// cpu is the server's processor time for each of the things done, in µs.
func (r rounds) cpu() float64 {
	var each []float64
	for _, s := range r {
		each = append(each, float64(s.cpu.Microseconds())/float64(len(s.delays)))
	}
	return median(each)
}

// delay is a percentile over all rounds, in milliseconds.
func (r rounds) delay(percent float64) float64 {
	var all []time.Duration
	for _, s := range r {
		all = append(all, s.delays...)
	}
	return percentile(all, percent)
}

// percentile is by nearest rank, in milliseconds.
func percentile(all []time.Duration, percent float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Clone(all)
	slices.Sort(all)
	at := min(int(percent/100*float64(len(all))), len(all)-1)
	return float64(all[at].Nanoseconds()) / 1e6
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Clone(values)
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
