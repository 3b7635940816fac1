package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestBarsAreDrawn(t *testing.T) {
	t.Parallel()
	svg := Bars{
		Title: "Turns <at once>", Names: []string{"ours", "theirs"}, Mark: 1, Limit: 2,
		Rows: []Row{
			{Label: strings.Repeat("a long label ", 20), Values: []float64{0.5, 4}, Texts: []string{"50 %", "400 %"}},
			{Label: "missing", Values: []float64{-1, 1}},
		},
	}.SVG()
	wellFormed(t, svg)
	text := string(svg)
	for what, want := range map[string]string{
		"an escaped title":         "Turns &lt;at once&gt;",
		"the colours of dark mode": "prefers-color-scheme:dark",
		"a bar at half the mark":   `class="b0" x="400" y="78" width="77.5"`,
		"a bar that ends at 2":     `class="over" x="400" y="91" width="310.0"`,
		"what the bar stands for":  "400 %",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing: %s\n%s", what, want, text)
		}
	}
	if n := strings.Count(text, `<rect class="b0" x="400"`); n != 1 {
		t.Errorf("%d bars of the first kind, wanted 1: a missing value has none", n)
	}
}

func TestLogarithmicBars(t *testing.T) {
	t.Parallel()
	c := Bars{Log: true, Rows: []Row{{Values: []float64{1, 10, 100}}}}
	low, high := c.bounds()
	first, second, third := c.length(1, low, high), c.length(10, low, high), c.length(100, low, high)
	if d := (third - second) - (second - first); first <= 0 || d > 0.001 || d < -0.001 {
		t.Errorf("lengths %.1f, %.1f, %.1f: equal factors must be equally far apart, and the smallest visible", first, second, third)
	}
}

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}
