package packed

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"deckhand/internal/session"
)

// Search is a query's conditions, besides the owner. It looks into packed rows:
// of a hundred thousand rows that a rare word is looked for in, few are unpacked.
type Search struct {
	repository, trigger, status []byte
	text                        []byte // in lower case
	ascii                       bool   // text is
	all                         bool   // nothing is asked
}

// NewSearch takes the conditions of a query.
func NewSearch(q session.Query) Search {
	s := Search{repository: []byte(q.Repository), trigger: []byte(q.Trigger), text: []byte(strings.ToLower(q.Text))}
	if q.Status == session.Halted { // the others depend on the step, too
		s.status = []byte(q.Status)
	}
	s.ascii = isASCII(s.text)
	s.all = len(s.repository)+len(s.trigger)+len(s.status)+len(s.text) == 0
	return s
}

// The places in a row of the texts that can be looked for; see fields.
const (
	atID = iota
	_
	atTitle
	atStatus
	_
	_
	_
	atTrigger
	atRepository
	searched
)

// Wants reports whether the query wants a row. A damaged row is wanted, so that unpacking it
// reports the error.
func (s *Search) Wants(row []byte) bool {
	if s.all || len(row) == 0 {
		return true
	}
	var texts [searched][]byte
	rest, ok := row[1:], false
	for i := range texts {
		if texts[i], rest, ok = cutPiece(rest); !ok {
			return true
		}
	}
	return is(s.status, texts[atStatus]) && is(s.trigger, texts[atTrigger]) && is(s.repository, texts[atRepository]) &&
		(len(s.text) == 0 || s.in(texts[atTitle]) || s.in(texts[atRepository]) || (len(s.text) >= idPart || len(texts[atID]) != madeID) && s.in(texts[atID]))
}

// is reports whether a text is the one that is asked for, if one is.
func is(asked, text []byte) bool { return len(asked) == 0 || bytes.Equal(asked, text) }

const (
	shortest = 3  // letters are needed to use the index of words
	madeID   = 32 // is the length of an id that was not chosen by a client
	idPart   = 8  // letters of such an id are needed to find it; see session.Query
)

// All is true if the query has no conditions.
func (s *Search) All() bool { return s.all }

// Parts are the texts that an index of groups of three letters is asked for, none if it cannot
// help: it knows no text of fewer than three letters and no part of an id that was made here,
// and the case of letters beyond ASCII is compared by rules of its own.
func (s *Search) Parts() (parts []string) {
	if len(s.text) > 0 && (len(s.text) < shortest || !s.ascii) || s.asksForID() {
		return nil
	}
	for _, t := range [][]byte{s.text, bytes.ToLower(s.repository)} {
		if len(t) >= shortest && isASCII(t) && bytes.IndexByte(t, 0) < 0 {
			parts = append(parts, string(t))
		}
	}
	return parts
}

// Phrase is Parts in the language of SQLite's index, empty if there are none.
func (s *Search) Phrase() string {
	parts := s.Parts()
	for i, t := range parts {
		parts[i] = `"` + strings.ReplaceAll(t, `"`, `""`) + `"`
	}
	return strings.Join(parts, " AND ")
}

// asksForID reports whether the text can be a part of an id that was made here.
func (s *Search) asksForID() bool {
	return len(s.text) >= idPart && len(bytes.Trim(s.text, "0123456789abcdef")) == 0
}

// Words is the text by which the index of words finds a packed row.
func Words(row []byte) (string, error) {
	r, err := ReadRow(row)
	if err != nil {
		return "", err
	}
	return WordsOf(r), nil
}

// WordsOf is the text by which the index of words finds a row.
func WordsOf(r session.Row) string {
	text := r.Title + "\n" + r.Repository
	if len(r.ID) != madeID {
		text += "\n" + string(r.ID)
	}
	return strings.ToLower(text)
}

// in looks for the text, in upper or lower case. What SQLite and this loop know
// of letters ends with ASCII; the rest is left to those who know more.
func (s *Search) in(text []byte) bool {
	if !isASCII(text) {
		return bytes.Contains(bytes.ToLower(text), s.text)
	}
	if !s.ascii {
		return false
	}
	for at := 0; at+len(s.text) <= len(text); at++ {
		if beginsWith(text[at:], s.text) {
			return true
		}
	}
	return false
}

// beginsWith takes a text of ASCII, and a beginning that is so in lower case.
func beginsWith(text, lower []byte) bool {
	for i, want := range lower {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want {
			return false
		}
	}
	return true
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
