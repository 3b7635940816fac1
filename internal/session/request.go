package session

import "slices"

// rememberedRequests is how many pull requests of a session are listed, the newest.
const rememberedRequests = 20

// Opened records a pull request of the conversation, once. It is allowed outside of turns: the
// agent opens one within a turn, the user's own tools at any time.
func (s State) Opened(r RequestOpened) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.hasRequest(r) {
		return nil, nil
	}
	return []Payload{r}, nil
}

// hasRequest is true for a pull request that is listed already.
func (s State) hasRequest(r RequestOpened) bool {
	return slices.ContainsFunc(s.Requests, func(known RequestOpened) bool {
		return known.Provider == r.Provider && known.Repository == r.Repository && known.Number == r.Number
	})
}

func (s State) checkRequest(r RequestOpened) error {
	switch {
	case r.Repository == "" || r.Number < 1:
		return s.no(r, "a pull request has a repository and a number")
	case s.hasRequest(r):
		return s.no(r, "a pull request is recorded once")
	}
	return nil
}

// withRequest adds one to a copy of the list, from which the oldest falls out.
func (s State) withRequest(r RequestOpened) State {
	s.Requests = append(slices.Clone(s.Requests[max(len(s.Requests)+1-rememberedRequests, 0):]), r)
	return s
}
