package terminal

import (
	"io"
	"strings"
)

// Look is how a cell of a Table is shown, where there are colours.
type Look string

// The looks.
const (
	Plain Look = ""
	Good  Look = green
	Busy  Look = cyan
	Asks  Look = yellow
	Bad   Look = red
)

// Cell is a text with a look.
type Cell struct {
	Text string
	Look Look
}

// Table writes rows as columns. The first row is the head, and the last column
// gets the room that is left.
type Table struct {
	// Width is how many columns the terminal has; 0 is no limit.
	Width int
	Color bool
	rows  [][]Cell
}

// Row adds a row.
func (t *Table) Row(cells ...Cell) { t.rows = append(t.rows, cells) }

// Write writes the rows.
func (t *Table) Write(w io.Writer) error {
	var wide []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], columns(Inline(c.Text)))
		}
	}
	d := Display{Options: Options{Color: t.Color}}
	var b strings.Builder
	for n, row := range t.rows {
		used := 0
		for i, c := range row {
			text := Inline(c.Text)
			look := string(c.Look)
			if n == 0 {
				look = bold
			}
			if i == len(row)-1 {
				if t.Width > 0 {
					text = clip(text, max(t.Width-used-1, 8))
				}
				b.WriteString(d.paint(look, text))
				break
			}
			b.WriteString(d.paint(look, text) + strings.Repeat(" ", wide[i]-columns(text)+2))
			used += wide[i] + 2
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
