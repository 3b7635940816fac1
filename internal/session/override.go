package session

import "cmp"

// Override chooses the model, its effort, the limit, plan mode and approvals for this conversation alone.
func (s State) Override(o Overridden) ([]Payload, error) {
	if err := s.alive(); err != nil || o == s.Overrides {
		return nil, err
	}
	return []Payload{o}, nil
}

// Over is o where it says something, and otherwise what is below it: a session that was delegated goes by what was chosen for the one above it.
func (o Overridden) Over(below Overridden) Overridden {
	o.Model, o.Effort, o.Approval = cmp.Or(o.Model, below.Model), cmp.Or(o.Effort, below.Effort), cmp.Or(o.Approval, below.Approval)
	if !o.Limited {
		o.Budget, o.Limited = below.Budget, below.Limited
	}
	o.Plan = o.Plan || below.Plan
	return o
}
