package chat

import (
	"context"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/cli/prompt"
)

// hasPlan reports whether the agent's last answer is a plan that can be approved.
func (s *conversation) hasPlan() bool {
	return s.plan && s.id != "" && s.reply != "" && !s.Working() && s.present()
}

// setPlan turns plan mode on or off. The event of the change is shown.
func (s *conversation) setPlan(ctx context.Context, id string, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := s.Client.SetOverrides(ctx, id, api.SetOverrides{PlanMode: api.Some(on)})
	return cli.Plainly(err)
}

// planOf reads the arguments of /plan.
func (s *conversation) planOf(arguments string) (prompt.PlanStep, error) {
	return prompt.Plan(arguments, s.plan, s.hasPlan())
}
