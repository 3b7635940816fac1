package fetch

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The converter takes far more time and room than a page is long when the page
// is made to be hard, and it cannot be interrupted. Pages within these bounds
// take it a second or two at most; of others the words are given as they are.
const (
	maxNodes = 50_000
	// maxWork bounds the length of all texts, each times how deep it lies.
	maxWork = 32 << 20
	// maxNested is how deep lists, quotations and tables may lie in each other.
	maxNested = 12
	// maxTable bounds a table as it is written: every row as wide as the widest.
	maxTable = 1 << 20
)

var nesting = []atom.Atom{atom.Ul, atom.Ol, atom.Blockquote, atom.Table}

// easy says whether the converter can be given a page.
func easy(doc *html.Node) bool {
	nodes, work := 0, 0
	var visit func(n *html.Node, depth, nested int) bool
	visit = func(n *html.Node, depth, nested int) bool {
		if n.Type == html.TextNode {
			work += len(n.Data) * depth
		}
		if slices.Contains(nesting, n.DataAtom) {
			nested++
		}
		if nodes++; nodes > maxNodes || work > maxWork || nested > maxNested {
			return false
		}
		for c := range n.ChildNodes() {
			if !visit(c, depth+1, nested) {
				return false
			}
		}
		return n.DataAtom != atom.Table || width(n) <= maxTable
	}
	return visit(doc, 1, 0)
}

// width is how long a table is once its cells are padded to the same length.
func width(table *html.Node) int {
	var columns []int
	rows := 0
	for row := range table.Descendants() {
		if row.DataAtom != atom.Tr {
			continue
		}
		rows++
		i := 0
		for cell := range row.ChildNodes() {
			if cell.DataAtom != atom.Td && cell.DataAtom != atom.Th {
				continue
			}
			if i == len(columns) {
				columns = append(columns, 0)
			}
			columns[i] = max(columns[i], len(textOf(cell)))
			i++
		}
	}
	sum := 3 * len(columns)
	for _, c := range columns {
		sum += c
	}
	return rows * sum
}

// unspan takes away that a cell reaches over others: a page of some bytes can
// ask for millions of cells that way.
func unspan(doc *html.Node) {
	for n := range doc.Descendants() {
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "colspan" || a.Key == "rowspan" })
	}
}

// inline are elements that do not end a line.
var inline = []atom.Atom{
	atom.A, atom.Abbr, atom.B, atom.Cite, atom.Code, atom.Em, atom.Font, atom.I, atom.Kbd, atom.Label, atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small,
	atom.Span, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.U, atom.Var, atom.Wbr,
}

// plain is the words of a page, one line for each paragraph.
func plain(doc *html.Node) string {
	var out, line strings.Builder
	end := func() {
		if words := strings.Join(strings.Fields(line.String()), " "); words != "" {
			out.WriteString(words + "\n")
		}
		line.Reset()
	}
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode:
			line.WriteString(n.Data)
		case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
			line.WriteByte(' ')
		case n.Type == html.ElementNode && !slices.Contains(inline, n.DataAtom):
			end()
		}
	}
	end()
	return out.String()
}
