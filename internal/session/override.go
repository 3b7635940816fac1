package session

// Override chooses the model and the limit for this conversation alone. A session
// that ended its turn for lack of money goes on, if there is more now: that is why
// people raise a limit. broke is the error with which such a turn ends.
func (s State) Override(o Overridden, broke string) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if o == s.Overrides {
		return nil, nil
	}
	out := []Payload{o}
	if more := !o.Limited || o.Budget > s.Committed(); !more || s.ErrorID != broke || s.Stopped || s.Failed {
		return out, nil
	}
	again, err := s.Resume()
	return append(out, again...), err
}

// Over is o where it says something, and otherwise what is below it: a session
// that was delegated has what was chosen for the one above it.
func (o Overridden) Over(below Overridden) Overridden {
	if o.Model == "" {
		o.Model = below.Model
	}
	if !o.Limited {
		o.Budget, o.Limited = below.Budget, below.Limited
	}
	return o
}
