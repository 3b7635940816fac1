package load

import (
	"slices"
	"sync"
	"time"
)

// Sample is what callers did in one round.
type Sample struct {
	Took   time.Duration
	Delays []time.Duration
	CPU    time.Duration // of the server in this round, where it is known
}

// Rate is how many per second.
func (s Sample) Rate() float64 { return float64(len(s.Delays)) / s.Took.Seconds() }

// Hammer lets each caller do one thing after the other until the time is over.
// The first error ends the round.
func Hammer(callers int, during time.Duration, do func(caller int) error) (Sample, error) {
	return while(callers, func(_ int, took time.Duration) bool { return took < during }, func(caller, _ int) error { return do(caller) })
}

// Repeat lets each caller do n things, one after the other. The first error ends the round.
func Repeat(callers, n int, do func(caller, i int) error) (Sample, error) {
	return while(callers, func(i int, _ time.Duration) bool { return i < n }, do)
}

// while lets each caller do one thing after the other as long as more says so.
func while(callers int, more func(i int, took time.Duration) bool, do func(caller, i int) error) (Sample, error) {
	delays := make([][]time.Duration, callers)
	failed := make(chan error, callers)
	var wait sync.WaitGroup
	begin := time.Now()
	for caller := range callers {
		wait.Go(func() {
			at := time.Now()
			for i := 0; len(failed) == 0 && more(i, at.Sub(begin)); i++ {
				if err := do(caller, i); err != nil {
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
	return gather(begin, delays, failed)
}

// Share lets callers do n things together, each once, and stops early after most.
// The first error ends the round.
func Share(callers, n int, most time.Duration, do func(caller, i int) error) (Sample, error) {
	delays := make([][]time.Duration, callers)
	failed := make(chan error, callers)
	todo := make(chan int, n)
	for i := range n {
		todo <- i
	}
	close(todo)
	var wait sync.WaitGroup
	begin := time.Now()
	for caller := range callers {
		wait.Go(func() {
			for i := range todo {
				at := time.Now()
				if at.Sub(begin) > most || len(failed) > 0 {
					return
				}
				if err := do(caller, i); err != nil {
					failed <- err
					return
				}
				delays[caller] = append(delays[caller], time.Since(at))
			}
		})
	}
	wait.Wait()
	return gather(begin, delays, failed)
}

func gather(begin time.Time, delays [][]time.Duration, failed chan error) (Sample, error) {
	s := Sample{Took: time.Since(begin), Delays: slices.Concat(delays...)}
	select {
	case err := <-failed:
		return s, err
	default:
		return s, nil
	}
}

// Rounds are the samples of one side of a comparison.
type Rounds []Sample

// Rate is the median of the rates of the rounds.
func (r Rounds) Rate() float64 {
	var rates []float64
	for _, s := range r {
		rates = append(rates, s.Rate())
	}
	return Median(rates)
}

// Paired is the median of the ratios of the rounds. A round and its counterpart
// are neighbours in time, so that what else the machine did hit both; medians of
// each side alone may come from different moments.
func Paired(ours, floor Rounds) float64 {
	var ratios []float64
	for i := range min(len(ours), len(floor)) {
		ratios = append(ratios, ours[i].Rate()/floor[i].Rate())
	}
	return Median(ratios)
}

// CPU is the processor time for each of the things done, in µs.
func (r Rounds) CPU() float64 {
	var each []float64
	for _, s := range r {
		each = append(each, float64(s.CPU.Microseconds())/float64(max(len(s.Delays), 1)))
	}
	return Median(each)
}

// Delay is a percentile over all rounds, in milliseconds.
func (r Rounds) Delay(percent float64) float64 {
	var all []time.Duration
	for _, s := range r {
		all = append(all, s.Delays...)
	}
	return Percentile(all, percent)
}

// Percentile is by nearest rank, in milliseconds.
func Percentile(all []time.Duration, percent float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Clone(all)
	slices.Sort(all)
	at := min(int(percent/100*float64(len(all))), len(all)-1)
	return float64(all[at].Nanoseconds()) / 1e6
}

// Median is the middle value, or the mean of the two in the middle.
func Median(values []float64) float64 {
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
