// Package marks finds what a shell tells its runner within its output.
package marks

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"strconv"
)

// The shell reports its state to the runner within its output, because a separate channel could
// overtake the output. A mark is a terminal control sequence with a word that cannot be guessed:
//
//	ESC ] 5379 ; word ; kind ; number ; status ; options BEL
//
// number is the command's, status its exit code. The options are letters: e, x and v
// for those of "set", d for a shell that cannot be used any more, k for a skipped command,
// r for an output that is redirected.
const (
	markStart = "\x1b]5379;"
	markEnd   = '\a'
	// maxMark is how long the part after the word may be.
	maxMark = 32
)

// The kinds of marks.
const (
	Took     = 't' // a plain shell has taken its next line, and waits for a name
	Began    = 'b' // a command is about to run
	Ended    = 'e' // it has ended
	Prompted = 'p' // the shell reads its next line; what ran before it has ended
)

// Unknown is the number of a mark after a command that unset the shell's variables.
const Unknown = -1

// Mark is one that was found.
type Mark struct {
	Kind    byte
	Number  int64 // of the command, or Unknown
	Status  int
	Errexit bool
	Traced  bool // "set -v" is on, or in a plain shell "set -x"
	Damaged bool
	Skipped bool // a trap of DEBUG made the shell skip a command
	// Redirected is true if the standard output of the shell is not its terminal.
	Redirected bool
}

// Word makes a word for the marks of one shell.
func Word() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Scanner takes marks out of a stream that comes in pieces.
type Scanner struct {
	prefix []byte // of every mark of this shell
	held   []byte // the end of what came, if it may be the beginning of a mark
	// Hides is true while "set -v" may show our own lines, which are left out.
	Hides bool
	lines [][]byte
}

// New makes a Scanner for the marks with this word. lines are ours.
func New(word string, lines [][]byte) *Scanner {
	return &Scanner{prefix: []byte(markStart + word + ";"), lines: lines}
}

// Scan hands on what is output and the marks, in order. What may be a part of a
// mark is held back until more comes.
func (s *Scanner) Scan(b []byte, output func([]byte), found func(Mark)) {
	if !s.Hides {
		s.marks(b, output, found)
		return
	}
	b = append(s.held, b...)
	s.held = nil
	for {
		i, n, whole := s.line(b)
		s.marks(b[:i], output, found)
		if !whole { // what is held is a mark's beginning, which no line follows
			s.held = append(s.held, b[i:]...)
			return
		}
		if n == 0 {
			return
		}
		b = b[i+n:]
	}
}

// line finds one of our lines and says how long it is, 0 if there is none. It is not
// whole if that cannot be told yet.
func (s *Scanner) line(b []byte) (at, n int, whole bool) {
	for at = 0; ; at++ {
		i := bytes.IndexByte(b[at:], '{')
		if i < 0 {
			return len(b), 0, true
		}
		at += i
		for _, line := range s.lines {
			if bytes.HasPrefix(b[at:], line) {
				return at, len(line), true
			}
			if bytes.HasPrefix(line, b[at:]) {
				return at, 0, false
			}
		}
	}
}

// marks is Scan for a stream without our lines.
func (s *Scanner) marks(b []byte, output func([]byte), found func(Mark)) {
	if len(s.held) > 0 {
		b = append(s.held, b...)
		s.held = nil
	}
	text := 0 // where the output begins that was not handed on
	for at := 0; at < len(b); {
		i := bytes.IndexByte(b[at:], markStart[0])
		if i < 0 {
			break
		}
		at += i
		m, n, whole := s.parse(b[at:])
		if !whole {
			if at > text {
				output(b[text:at])
			}
			s.held = bytes.Clone(b[at:])
			return
		}
		if n == 0 { // something else
			at++
			continue
		}
		if at > text {
			output(b[text:at])
		}
		if m.Kind != 0 {
			found(m)
		}
		at += n
		text = at
	}
	if len(b) > text {
		output(b[text:])
	}
}

// Rest is what was held back and can be no mark any more, since nothing follows.
func (s *Scanner) Rest() []byte {
	b := s.held
	s.held = nil
	return b
}

// parse reads a mark at the start of b and says how long it is, 0 if it is none. It
// has no kind if it makes no sense. It is not whole if that cannot be told yet.
func (s *Scanner) parse(b []byte) (m Mark, n int, whole bool) {
	if len(b) < len(s.prefix) {
		return m, 0, !bytes.HasPrefix(s.prefix, b)
	}
	if !bytes.HasPrefix(b, s.prefix) {
		return m, 0, true
	}
	body := b[len(s.prefix):]
	end := bytes.IndexByte(body[:min(len(body), maxMark)], markEnd)
	if end < 0 {
		return m, 0, len(body) >= maxMark
	}
	m, ok := parseMark(body[:end])
	if !ok {
		if bytes.IndexByte(body[:end], markStart[0]) >= 0 {
			return m, 0, true // another one may begin in it
		}
		m = Mark{} // left out too: a command unset our variables
	}
	return m, len(s.prefix) + end + 1, true
}

func parseMark(b []byte) (m Mark, ok bool) {
	parts := bytes.Split(b, []byte(";"))
	if len(parts) < 2 || len(parts) > 4 || len(parts[0]) != 1 {
		return m, false
	}
	m.Kind = parts[0][0]
	if string(parts[1]) == "?" {
		m.Number = Unknown
	} else if number, err := strconv.ParseUint(string(parts[1]), 10, 63); err != nil {
		return m, false
	} else {
		m.Number = int64(number)
	}
	switch m.Kind {
	case Began:
		return m, len(parts) == 2
	case Took, Ended, Prompted:
	default:
		return m, false
	}
	if len(parts) == 4 {
		m.Errexit = bytes.ContainsRune(parts[3], 'e')
		m.Traced = bytes.ContainsAny(parts[3], "xv")
		m.Damaged = bytes.ContainsRune(parts[3], 'd')
		m.Redirected = bytes.ContainsRune(parts[3], 'r')
		m.Skipped = bytes.ContainsRune(parts[3], 'k')
	} else if len(parts) != 3 {
		return m, false
	}
	status, err := strconv.ParseUint(string(parts[2]), 10, 16)
	m.Status = int(status)
	return m, err == nil
}
