package main

import (
	"math"
	"testing"

	"deckhand/bench/report"
)

func TestRegressionsFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		unit   string
		ratios []float64
		want   bool
	}{
		"noise around the same":        {report.Millis, []float64{1.05, 0.96, 1.02, 0.97, 1.01, 0.99}, false},
		"much noise, worse on average": {report.Millis, []float64{1.9, 0.7, 1.4, 0.8, 1.6, 0.9}, false},
		"a tenth slower":               {report.Millis, []float64{1.10, 1.09, 1.12, 1.11, 1.08, 1.10}, true},
		"a tenth faster":               {report.Millis, []float64{0.90, 0.91, 0.88, 0.89, 0.92, 0.90}, false},
		"a tenth fewer per second":     {report.PerSecond, []float64{0.90, 0.91, 0.88, 0.89, 0.92, 0.90}, true},
		"a tenth more per second":      {report.PerSecond, []float64{1.10, 1.09, 1.12, 1.11, 1.08, 1.10}, false},
		"one per cent slower":          {report.Micros, []float64{1.010, 1.011, 1.009, 1.010, 1.011, 1.010}, false},
	} {
		mean, low, high := interval(c.ratios)
		if !(low <= mean && mean <= high) {
			t.Errorf("%s: %.3f is not between %.3f and %.3f", name, mean, low, high)
		}
		if got := regressed(c.unit, low, high); got != c.want {
			t.Errorf("%s: %.3f to %.3f: regression %t, wanted %t", name, low, high, got, c.want)
		}
	}
	if _, low, high := interval([]float64{1}); !math.IsNaN(low) && low > 0 || !math.IsNaN(high) && !math.IsInf(high, 1) {
		t.Errorf("one round proves nothing, and its interval is %.2f to %.2f", low, high)
	}
}

// TestMissedTargetsFail: the exit code depends on the error of finish.
func TestMissedTargetsFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fill func(r *report.Report)
		ok   bool
	}{
		"met":            {func(r *report.Report) { r.Add("warm", "turns", report.PerSecond, 500, 0).AtLeast(400) }, true},
		"missed":         {func(r *report.Report) { r.Add("warm", "turns", report.PerSecond, 300, 0).AtLeast(400) }, false},
		"one of two":     {func(r *report.Report) { r.Add("warm", "turn", report.Millis, 5, 2).AtMost(10).RatioAtMost(1.5) }, false},
		"without target": {func(r *report.Report) { r.Add("warm", "turns", report.PerSecond, 500, 0) }, false},
	} {
		r := report.New(true, "test")
		c.fill(r)
		if err := r.Finish(t.TempDir()); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
