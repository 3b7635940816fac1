package conversation

import (
	"context"

	"deckhand/api"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Egress is the command to choose how the sandbox of a conversation reaches the network.
type Egress struct {
	User   string
	ID     session.ID
	Policy api.SetEgress
}

// SetEgress stores the policy of a conversation. It is workspace.ErrNone on a server without sandboxes.
func (s *Service) SetEgress(ctx context.Context, c Egress) (session.State, error) {
	if _, err := s.Row(ctx, c.User, c.ID); err != nil {
		return session.State{}, err
	}
	if s.Workspaces == nil {
		return session.State{}, workspace.ErrNone
	}
	policy, err := parsePolicy(c.Policy)
	if err != nil {
		return session.State{}, err
	}
	return s.change(ctx, c.User, c.ID, func(st session.State) ([]session.Payload, error) {
		return st.SetEgress(session.EgressSet{Mode: string(policy.Mode), Allow: policy.Allow})
	})
}

// parsePolicy looks at each pattern by itself, to say which is wrong.
func parsePolicy(b api.SetEgress) (egress.Policy, error) {
	allow, _ := b.Allow.Get()
	var faults []api.FieldError
	for i, pattern := range allow {
		if _, err := egress.ParsePolicy(string(egress.Allowlist), []string{pattern}); err != nil {
			faults = append(faults, api.FieldError{Loc: []any{"body", "allow", i}, Type: "value_error", Msg: Sentence(err.Error())})
		}
	}
	if len(faults) > 0 {
		return egress.Policy{}, &api.ValidationError{Detail: faults[:min(len(faults), api.MaxFaults)]}
	}
	policy, err := egress.ParsePolicy(b.Mode, allow)
	if err != nil {
		return policy, api.Invalid("value_error", Sentence(err.Error()), "mode")
	}
	return policy, nil
}
