package terminal

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Input is the line that a person types while the conversation goes on above
// it. It is given the bytes of a terminal that neither echoes nor collects
// lines, and belongs to one goroutine.
type Input struct {
	text []rune
	at   int
	// rest is the beginning of a key that has not come in full.
	rest    []byte
	pasting bool
	past    []string
	back    int // how far into the past the person went
	draft   []rune
}

// Typed is what a person did: they entered a line, or pressed Ctrl-D on an empty one.
type Typed struct {
	Line string
	End  bool
}

// maxPast is how many entered lines can be had again, maxTyped how long one may be.
const (
	maxPast  = 100
	maxTyped = 1 << 20
)

// Set replaces what is typed, with the cursor at its end.
func (in *Input) Set(text string) { in.text = []rune(text); in.at = len(in.text) }

// Text is what is typed so far.
func (in *Input) Text() string { return string(in.text) }

// The sequences of keys, without the escape.
var sequences = map[string]func(*Input){
	"[A": (*Input).older, "OA": (*Input).older, "[B": (*Input).newer, "OB": (*Input).newer,
	"[C": (*Input).right, "OC": (*Input).right, "[D": (*Input).left, "OD": (*Input).left,
	"[H": (*Input).home, "OH": (*Input).home, "[1~": (*Input).home, "[7~": (*Input).home,
	"[F": (*Input).end, "OF": (*Input).end, "[4~": (*Input).end, "[8~": (*Input).end,
	"[3~": (*Input).remove, "b": (*Input).wordLeft, "f": (*Input).wordRight, "[1;5D": (*Input).wordLeft, "[1;5C": (*Input).wordRight,
	"[200~": func(in *Input) { in.pasting = true }, "[201~": func(in *Input) { in.pasting = false },
	"\r": func(in *Input) { in.insert('\n') }, "\n": func(in *Input) { in.insert('\n') },
}

// Feed takes bytes as they come, and returns what the person did with them.
func (in *Input) Feed(b []byte) []Typed {
	var out []Typed
	in.rest = append(in.rest, b...)
	for len(in.rest) > 0 {
		if in.rest[0] == 0x1b {
			n := sequence(in.rest)
			if n == 0 { // more of it is to come
				break
			}
			if do := sequences[string(in.rest[1:n])]; do != nil {
				do(in)
			}
			in.rest = in.rest[n:]
			continue
		}
		if !utf8.FullRune(in.rest) {
			break
		}
		r, n := utf8.DecodeRune(in.rest)
		in.rest = in.rest[n:]
		if t, did := in.key(r); did {
			out = append(out, t)
		}
	}
	in.rest = slices.Clone(in.rest)
	return out
}

// sequence is how long the sequence is that the bytes begin with, 0 if it has not ended yet.
func sequence(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case 0x1b:
		return 1 // the key itself, and then another one
	case 'O':
		if len(b) < 3 {
			return 0
		}
		return 3
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
			if i > 16 || b[i] < 0x20 { // nothing that a keyboard sends
				return i
			}
		}
		return 0
	}
	return 2
}

// The keys that a control key makes of a letter.
const (
	keyA, keyB, keyD, keyE, keyF  = 1, 2, 4, 5, 6
	keyK, keyN, keyP, keyU, keyW  = 11, 14, 16, 21, 23
	keyBack, keyDelete, keyReturn = 8, 0x7f, '\r'
)

// key takes one character. did is true if the person is done with the line.
func (in *Input) key(r rune) (t Typed, did bool) {
	if in.pasting {
		if r == keyReturn {
			r = '\n'
		}
		if r == '\n' || r == '\t' || !unsafe(r) {
			in.insert(r)
		}
		return t, false
	}
	switch r {
	case keyReturn, '\n':
		return Typed{Line: in.enter()}, true
	case keyD:
		if len(in.text) == 0 {
			return Typed{End: true}, true
		}
		in.remove()
	case keyBack, keyDelete:
		if in.at > 0 {
			in.at--
			in.remove()
		}
	case keyA:
		in.home()
	case keyE:
		in.end()
	case keyB:
		in.left()
	case keyF:
		in.right()
	case keyP:
		in.older()
	case keyN:
		in.newer()
	case keyU:
		in.text, in.at = slices.Clone(in.text[in.at:]), 0
	case keyK:
		in.text = in.text[:in.at]
	case keyW:
		to := in.at
		in.wordLeft()
		in.text = slices.Delete(in.text, in.at, to)
	default:
		if !unsafe(r) && r != utf8.RuneError {
			in.insert(r)
		}
	}
	return t, false
}

func (in *Input) insert(r rune) {
	if len(in.text) < maxTyped {
		in.text = slices.Insert(in.text, in.at, r)
		in.at++
	}
}

func (in *Input) remove() {
	if in.at < len(in.text) {
		in.text = slices.Delete(in.text, in.at, in.at+1)
	}
}

func (in *Input) home()  { in.at = 0 }
func (in *Input) end()   { in.at = len(in.text) }
func (in *Input) left()  { in.at = max(in.at-1, 0) }
func (in *Input) right() { in.at = min(in.at+1, len(in.text)) }

func (in *Input) wordLeft() {
	for in.at > 0 && in.text[in.at-1] == ' ' {
		in.at--
	}
	for in.at > 0 && in.text[in.at-1] != ' ' {
		in.at--
	}
}

func (in *Input) wordRight() {
	for in.at < len(in.text) && in.text[in.at] == ' ' {
		in.at++
	}
	for in.at < len(in.text) && in.text[in.at] != ' ' {
		in.at++
	}
}

// enter ends the line.
func (in *Input) enter() string {
	line := string(in.text)
	if strings.TrimSpace(line) != "" && (len(in.past) == 0 || in.past[len(in.past)-1] != line) {
		in.past = append(in.past, line)
		in.past = in.past[max(0, len(in.past)-maxPast):]
	}
	in.text, in.at, in.back, in.draft = nil, 0, 0, nil
	return line
}

// older brings back the line that was entered before.
func (in *Input) older() {
	if in.back == len(in.past) {
		return
	}
	if in.back == 0 {
		in.draft = in.text
	}
	in.back++
	in.Set(in.past[len(in.past)-in.back])
}

func (in *Input) newer() {
	switch in.back {
	case 0:
		return
	case 1:
		in.Set(string(in.draft))
	default:
		in.Set(in.past[len(in.past)-in.back+1])
	}
	in.back--
}

// view is the part of the line around the cursor that has room in so many
// columns, and the column of the cursor in it.
func (in *Input) view(room int) (text string, column int) {
	var shown []string
	for _, r := range in.text {
		switch r {
		case '\n':
			shown = append(shown, "↵")
		case '\t':
			shown = append(shown, " ")
		default:
			shown = append(shown, Clean(string(r)))
		}
	}
	from, used := in.at, 0
	for from > 0 && used+columns(shown[from-1]) < room {
		from--
		used += columns(shown[from])
	}
	column = used
	to := in.at
	for to < len(shown) && used+columns(shown[to]) < room {
		used += columns(shown[to])
		to++
	}
	return strings.Join(shown[from:to], ""), column
}
