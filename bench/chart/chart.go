// Package chart draws horizontal bars as SVG, readable on light and dark pages.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"

	"deckhand/internal/clip"
)

// Bars is a chart with a group of bars for each row.
type Bars struct {
	Title string
	Note  string   // one line below the title
	Names []string // of the bars in a group, for the legend; one bar needs none
	Rows  []Row
	Mark  float64 // a line at this value, if it is not 0
	Limit float64 // bars end here, if it is not 0: one long bar must not make the others too short to see
	Log   bool    // each step to the right is a factor
}

// Row is a label with its bars. A value below 0 is a bar that is missing.
type Row struct {
	Label  string
	Values []float64
	Texts  []string // what is written beside each bar
}

// The layout in pixels.
const (
	width   = 860
	left    = 400 // of the bars
	right   = 150 // for the text beside them
	bar     = 13
	gap     = 9
	letters = 56 // of a label
)

// style has the colours for both kinds of pages.
const style = `<style>
text{font:12px system-ui,sans-serif;fill:#1f2328}.t{font-size:15px;font-weight:600}.n{fill:#59636e}
.bg{fill:#ffffff}.axis{stroke:#818b98}.mark{stroke:#cf222e;stroke-dasharray:4 3}
.b0{fill:#0969da}.b1{fill:#bc4c00}.b2{fill:#1a7f37}.b3{fill:#8250df}.b4{fill:#9a6700}.over{fill:#cf222e}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.n{fill:#9198a1}.bg{fill:#0d1117}.axis{stroke:#656c76}
.mark{stroke:#ff7b72}.b0{fill:#4493f8}.b1{fill:#f0883e}.b2{fill:#3fb950}.b3{fill:#ab7df8}.b4{fill:#d29922}.over{fill:#f85149}}
</style>`

// colours is how many kinds of bars style has.
const colours = 5

// SVG draws the chart.
func (c Bars) SVG() []byte {
	var out bytes.Buffer
	group := max(len(c.Names), 1)*bar + gap
	top := 58
	if len(c.Names) > 1 {
		top += 20
	}
	height := top + len(c.Rows)*group + 12
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<title>%s</title>\n%s\n", escape(c.Title), style)
	fmt.Fprintf(&out, `<rect class="bg" width="%d" height="%d"/><text class="t" x="12" y="24">%s</text><text class="n" x="12" y="44">%s</text>`+"\n", width, height, escape(c.Title), escape(c.Note))
	for i, name := range c.Names {
		if len(c.Names) > 1 {
			x := 12 + i*150
			fmt.Fprintf(&out, `<rect class="b%d" x="%d" y="54" width="11" height="11"/><text x="%d" y="64">%s</text>`+"\n", i%colours, x, x+17, escape(name))
		}
	}
	low, high := c.bounds()
	for i, r := range c.Rows {
		y := top + i*group
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s<title>%s</title></text>`+"\n", left-8, y+(group-gap)/2+4, escape(clip.Runes(r.Label, letters)), escape(r.Label))
		for n, v := range r.Values {
			if v < 0 {
				continue
			}
			length := c.length(v, low, high)
			class := fmt.Sprint("b", n%colours)
			if c.Mark > 0 && v > c.Mark {
				class = "over"
			}
			fmt.Fprintf(&out, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, class, left, y+n*bar, length, bar-1)
			if n < len(r.Texts) {
				fmt.Fprintf(&out, `<text class="n" x="%.1f" y="%d">%s</text>`, left+length+6, y+n*bar+10, escape(r.Texts[n]))
			}
			out.WriteByte('\n')
		}
	}
	fmt.Fprintf(&out, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`, left, top-4, left, height-8)
	if c.Mark > 0 {
		x := left + c.length(c.Mark, low, high)
		fmt.Fprintf(&out, `<line class="mark" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, top-4, x, height-8)
	}
	out.WriteString("\n</svg>\n")
	return out.Bytes()
}

// bounds are the smallest and the largest value that is drawn.
func (c Bars) bounds() (low, high float64) {
	low, high = math.Inf(1), c.Mark
	for _, r := range c.Rows {
		for _, v := range r.Values {
			high = max(high, v)
			if v > 0 {
				low = min(low, v)
			}
		}
	}
	if c.Limit > 0 {
		high = min(high, c.Limit)
	}
	return low, high
}

// length of a bar in pixels. On a logarithmic scale the smallest is still visible.
func (c Bars) length(v, low, high float64) float64 {
	const all = width - left - right
	switch {
	case v <= 0 || high <= 0:
		return 0
	case c.Log && high > low:
		return all * (0.04 + 0.96*math.Log(min(v, high)/low)/math.Log(high/low))
	}
	return all * min(v, high) / high
}

func escape(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text))
	return out.String()
}
