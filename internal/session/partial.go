package session

import "unicode/utf8"

// maxPartial is how many characters of what an interrupted call had written are kept: as many as of a result.
const maxPartial = 30_000

const cutPartial = "\n[... Observation truncated due to length ...]\n"

// Written sets where to find what a call that is in progress has written so far,
// so that it is kept when the call is interrupted. Call it before the first change.
func (s *Sessions) Written(find func(id ID, call string) string) { s.written = find }

// asked is the state as rules see it.
func (s *Sessions) asked(st State) State {
	if s.written != nil {
		st.written = func(call string) string { return s.written(st.ID, call) }
	}
	return st
}

// partial is what a call in progress has written: both ends of it, if it is long.
func (s State) partial(call string) string {
	if s.written == nil {
		return ""
	}
	text := s.written(call)
	if len(text) <= maxPartial {
		return text
	}
	if n := utf8.RuneCountInString(text); n <= maxPartial {
		return text
	}
	head, tail := 0, len(text)
	for range maxPartial / 2 {
		_, n := utf8.DecodeRuneInString(text[head:])
		head += n
		_, n = utf8.DecodeLastRuneInString(text[:tail])
		tail -= n
	}
	return text[:head] + cutPartial + text[tail:]
}
