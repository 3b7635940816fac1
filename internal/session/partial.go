package session

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
	if r := []rune(text); len(r) > maxPartial {
		return string(r[:maxPartial/2]) + cutPartial + string(r[len(r)-maxPartial/2:])
	}
	return text
}
