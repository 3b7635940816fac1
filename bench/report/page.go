package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"deckhand/bench/chart"
)

// page is the report as Markdown, with the charts that are stored under the same name.
func (r *Report) page(name string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Benchmark of %s\n\n%s. Other programs used %.1f cores during the run.\n\n", r.Date, r.Machine, r.Others)
	if r.Quick {
		b.WriteString("A quick run: the ratios are less certain than those of a whole one.\n\n")
	}
	for _, n := range r.Notes {
		b.WriteString(n + "\n\n")
	}
	drawn := r.charts(name)
	for _, kind := range []string{"targets", "parts", "peers"} {
		if file := name + "-" + kind + ".svg"; drawn[file] != nil {
			fmt.Fprintf(&b, "![%s](%s)\n\n", strings.ToUpper(kind[:1])+kind[1:], file)
		}
	}
	table(&b, columns, "|---|---|---:|---:|---:|---|---|---|", func(row func(...string)) {
		for _, l := range r.Lines {
			row(l.cells()...)
		}
	})
	if len(r.Parts) > 0 {
		b.WriteString("\n## Where the time of a warm turn goes\n\n")
		table(&b, []string{"part", "ms", "what"}, "|---|---:|---|", func(row func(...string)) {
			for _, p := range r.Parts {
				row(p.Name, fmt.Sprintf("%.2f", p.Millis), p.What)
			}
		})
	}
	return b.Bytes()
}

// table writes rows of Markdown.
func table(b *bytes.Buffer, head []string, line string, rows func(row func(...string))) {
	write := func(cells ...string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(strings.ReplaceAll(c, "|", "\\|"), "\n", " ")
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	write(slices.Clone(head)...)
	b.WriteString(line + "\n")
	rows(write)
}

// charts are the drawings of a report by file name.
func (r *Report) charts(name string) map[string][]byte {
	files := map[string][]byte{}
	add := func(kind string, c chart.Bars) {
		if len(c.Rows) > 0 {
			files[name+"-"+kind+".svg"] = c.SVG()
		}
	}
	add("targets", r.targets())
	add("parts", r.parts())
	add("peers", r.peers())
	return files
}

// targets shows how much of each target is used, the worst first.
func (r *Report) targets() chart.Bars {
	c := chart.Bars{Title: "Targets", Note: "How much of each target is used; what passes the line misses it", Mark: 1, Limit: 2}
	lines := slices.DeleteFunc(slices.Clone(r.Lines), func(l Line) bool { return l.Use == 0 || l.Part == Peers })
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(b.Use, a.Use) })
	for _, l := range lines {
		c.Rows = append(c.Rows, chart.Row{Label: l.Part + ": " + l.Name, Values: []float64{l.Use}, Texts: []string{fmt.Sprintf("%.0f %% (%s)", 100*l.Use, Figure(l.Ours, l.Unit))}})
	}
	return c
}

// parts shows where the time of a turn goes.
func (r *Report) parts() chart.Bars {
	c := chart.Bars{Title: "A warm turn", Note: "Where its time goes, one at a time"}
	for _, p := range r.Parts {
		c.Rows = append(c.Rows, chart.Row{Label: p.Name, Values: []float64{p.Millis}, Texts: []string{fmt.Sprintf("%.2f ms", p.Millis)}})
	}
	return c
}

// Peers is the part of rows that compare with other servers.
const Peers = "peers"

// peers shows how many times better ours is than other servers.
func (r *Report) peers() chart.Bars {
	c := chart.Bars{Title: "Peers", Note: "How many times better than other servers under the same load; 1 is the same, each step to the right is a factor", Log: true}
	for _, l := range r.Lines {
		if l.Factor > 0 {
			c.Rows = append(c.Rows, chart.Row{Label: l.Name, Values: []float64{l.Factor}, Texts: []string{fmt.Sprintf("%.1f× (%s)", l.Factor, Figure(l.Ours, l.Unit))}})
		}
	}
	return c
}
