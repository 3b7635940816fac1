package terminal

import (
	"regexp"
	"strings"
)

// prose writes what a model says to a terminal, as it comes: lines are broken
// between words, and where there are colours the marks of Markdown become looks.
// A word is held back until it is whole, so that it can go to the next line.
type prose struct {
	d    *Display
	out  strings.Builder // what is to be written
	word strings.Builder // what is held back
	// gap is the space before the word, and column where the line has got to.
	gap    string
	column int
	// any is true after the first line, begun after the first word of a line, which
	// may say what the line is: indent is where it goes on when it is broken.
	any, begun bool
	indent     int
	// fence is true for lines of code, literal for those and rows of tables, which
	// are not broken; skip for a line of which nothing is shown.
	fence, literal, skip         bool
	heading, quote, strong, code bool
}

// add takes more of the text, which must be clean.
func (p *prose) add(text string) {
	if p.d.Width == nil || p.d.Whole {
		p.d.write(text)
		return
	}
	for _, r := range text {
		switch r {
		case '\n':
			p.endWord()
			p.endLine()
		case ' ':
			p.endWord()
			p.gap += " "
		case '\t':
			p.endWord()
			p.gap += "    "
		default:
			p.word.WriteRune(r)
		}
	}
	p.flush()
}

// end writes what is held back, and forgets what the text was.
func (p *prose) end() {
	p.endWord()
	p.flush()
	*p = prose{d: p.d}
}

// flush writes all that is ready at once.
func (p *prose) flush() {
	p.d.write(p.out.String())
	p.out.Reset()
}

func (p *prose) endLine() {
	if p.any && !p.skip {
		p.out.WriteByte('\n')
	}
	p.column, p.gap, p.indent = 0, "", 0
	p.begun, p.skip, p.literal = false, false, p.fence
	p.heading, p.quote, p.strong, p.code = false, false, false, false
}

// endWord writes the word that is held back, on this line or on the next.
func (p *prose) endWord() {
	word := p.word.String()
	p.word.Reset()
	if word == "" || p.skip || !p.begun && p.begin(word) {
		return
	}
	if p.heading && p.column == 0 {
		p.gap = ""
	}
	pieces, wide := p.pieces(word)
	if !p.literal && p.column > p.indent && p.column+len(p.gap)+wide >= p.d.width() {
		p.down()
	}
	p.out.WriteString(p.gap)
	p.column += len(p.gap)
	p.gap = ""
	for _, one := range pieces {
		p.write(one)
	}
}

// down goes on in the next line.
func (p *prose) down() {
	p.out.WriteString("\n" + strings.Repeat(" ", p.indent))
	p.column, p.gap = p.indent, ""
}

var ordinal = regexp.MustCompile(`^\d{1,3}[.)]$`)

// begin takes the first word of a line; done if there is nothing of it to show.
func (p *prose) begin(word string) (done bool) {
	p.begun, p.any = true, true
	switch {
	case strings.HasPrefix(word, "```"):
		p.fence = !p.fence
		p.literal, p.skip = true, p.d.Color
		return p.skip
	case p.fence:
		if p.d.Color {
			p.gap = "  " + p.gap
		}
	case strings.HasPrefix(word, "|"):
		p.literal = true
	case strings.Trim(word, "#") == "" && len(word) <= 6:
		p.heading, p.gap = true, ""
		return p.d.Color
	case word == ">":
		p.quote, p.indent = true, 2
	case word == "-" || word == "*" || word == "+" || ordinal.MatchString(word):
		p.indent = min(len(p.gap)+len(word)+1, p.d.width()/2)
	}
	return false
}

type piece struct{ look, text string }

// pieces are the parts of a word with the looks that its marks say, and how wide
// they are together.
func (p *prose) pieces(word string) (out []piece, wide int) {
	if !p.d.Color || p.literal {
		return []piece{{"", word}}, columns(word)
	}
	put := func(text string) {
		if text != "" {
			out = append(out, piece{p.look(), text})
			wide += columns(text)
		}
	}
	for word != "" {
		at := strings.IndexAny(word, "`*")
		switch {
		case at < 0:
			put(word)
			return out, wide
		case word[at] == '`':
			put(word[:at])
			p.code = !p.code
			word = word[at+1:]
		case !p.code && strings.HasPrefix(word[at:], "**") && (p.strong || len(word) > at+2):
			put(word[:at])
			p.strong = !p.strong
			word = word[at+2:]
		default:
			put(word[:at+1])
			word = word[at+1:]
		}
	}
	return out, wide
}

func (p *prose) look() string {
	switch {
	case p.code:
		return cyan
	case p.strong || p.heading:
		return bold
	case p.quote:
		return dim
	}
	return ""
}

// write puts a piece. One that is wider than a line is left to the terminal, so
// that it can be copied, unless there is something below whose rows are counted.
func (p *prose) write(one piece) {
	for p.d.foot != nil && p.column+columns(one.text) >= p.d.width() {
		if p.column > p.indent {
			p.down()
			continue
		}
		n := breakAt(one.text, p.d.width()-1-p.column)
		p.out.WriteString(p.d.paint(one.look, one.text[:n]))
		p.column, one.text = p.d.width(), one.text[n:]
	}
	p.out.WriteString(p.d.paint(one.look, one.text))
	p.column += columns(one.text)
}
