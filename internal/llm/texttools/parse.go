package texttools

import (
	"slices"
	"strings"
)

// The tags. The opening ones are recognised with their first attribute, so that
// a text about calls or results in general is not taken for one.
const (
	openCall    = "<call tool="
	closeCall   = "</call>"
	openArg     = "<arg "
	closeArg    = "</arg>"
	openResult  = "<result tool="
	closeResult = "</result>"
)

// found is a piece of an answer: a text, or the text of a call from tag to tag.
type found struct {
	text string
	call bool
}

// parser finds calls in a text that comes in fragments. No part of a tag is ever
// given out as text, however the fragments are cut.
type parser struct {
	held    string // not given out yet: blanks, perhaps the beginning of a tag, or a call
	inside  bool   // held is a call
	blanks  string // what stood between the text and it
	checked int    // up to here held has no end of a call
	called  bool   // there was a call
	stopped bool   // the model goes on with a result that it made up
}

// feed takes a fragment and gives what is certain by now.
func (p *parser) feed(fragment string) []found {
	if p.stopped {
		return nil
	}
	p.held += fragment
	var out []found
	for {
		f, more := p.next()
		if f.text != "" {
			out = append(out, f)
		}
		if !more {
			return out
		}
	}
}

// next gives the next piece, and reports whether there may be another one.
func (p *parser) next() (found, bool) {
	if p.inside {
		return p.nextCall()
	}
	at, tag := firstTag(p.held)
	switch tag {
	case openCall:
		text := strings.TrimRight(p.held[:at], " \t\r\n")
		p.blanks = p.held[len(text):at]
		p.held, p.inside, p.checked, p.called = p.held[at:], true, 0, true
		return found{text: text}, true
	case openResult:
		text := strings.TrimRight(p.held[:at], " \t\r\n")
		p.held, p.stopped = "", true
		return found{text: text}, false
	}
	keep := undecided(p.held)
	text := p.held[:len(p.held)-keep]
	p.held = p.held[len(text):]
	return found{text: text}, false
}

// nextCall gives the call that held begins with, if its end is there.
func (p *parser) nextCall() (found, bool) {
	for {
		i := strings.Index(p.held[p.checked:], closeCall)
		if i < 0 {
			p.checked = max(p.checked, len(p.held)-len(closeCall)+1)
			return found{}, false
		}
		end := p.checked + i + len(closeCall)
		if closes(p.held[:end-len(closeCall)]) {
			call := p.held[:end]
			p.held, p.inside = p.held[end:], false
			return found{text: call, call: true}, true
		}
		p.checked = end
	}
}

// closes reports whether the tag that closes a call, after this text, does close
// it: inside of a value it is a part of the value.
func closes(call string) bool {
	return strings.HasSuffix(strings.TrimRight(call, " \t\r\n"), closeArg) || !strings.Contains(call, openArg)
}

// end gives what is left when the answer has ended.
func (p *parser) end() []found {
	held := p.held
	p.held = ""
	switch {
	case p.inside && strings.Contains(held, ">"):
		return []found{{text: held, call: true}}
	case p.inside: // not even its first tag is whole, so it is none
		return []found{{text: p.blanks + held}}
	case strings.TrimSpace(held) == "" && (held == "" || p.called):
		return nil // what separates calls is not a text
	}
	return []found{{text: held}}
}

// firstTag finds the first of the tags that begin something.
func firstTag(s string) (int, string) {
	call, result := strings.Index(s, openCall), strings.Index(s, openResult)
	switch {
	case call >= 0 && (result < 0 || call < result):
		return call, openCall
	case result >= 0:
		return result, openResult
	}
	return -1, ""
}

// undecided is how many bytes at the end of a text may turn out not to be text:
// the beginning of a tag, and the blanks before one.
func undecided(s string) int {
	rest := s
	for n := min(len(s), len(openResult)-1); n > 0; n-- {
		if tail := s[len(s)-n:]; slices.ContainsFunc([]string{openCall, openResult}, func(tag string) bool { return strings.HasPrefix(tag, tail) }) {
			rest = s[:len(s)-n]
			break
		}
	}
	return len(s) - len(strings.TrimRight(rest, " \t\r\n"))
}
