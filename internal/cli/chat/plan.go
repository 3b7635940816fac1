package chat

import (
	"context"

	"deckhand/api"
	"deckhand/internal/cli"
)

// planReady tells the user what to do with a plan.
const planReady = "Plan mode. Use /plan approve to carry out the plan, /plan edit to change it, or /plan off to leave plan mode. Send a message to discuss the plan."

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

// approved returns the message that tells the agent to carry out its plan. The web page sends the same text.
func approved(plan, edited string) string {
	if edited == "" || edited == plan {
		return "The plan is approved. Carry it out."
	}
	return "The plan is approved with changes. Carry out this plan:\n\n" + edited
}

// planStep is an action of /plan.
type planStep int

const (
	planOn planStep = iota
	planOff
	planTask    // plan mode, and a task
	planApprove // the plan as it is
	planEdit
)

// planOf reads the arguments of /plan. Without any, it turns plan mode on or off.
func (s *conversation) planOf(arguments string) (planStep, error) {
	switch arguments {
	case "":
		if s.plan {
			return planOff, nil
		}
		return planOn, nil
	case "on":
		return planOn, nil
	case "off":
		return planOff, nil
	case "approve", "edit":
		if !s.hasPlan() {
			return 0, cli.Usagef("there is no plan to %s: describe a task with /plan TASK, and wait for the agent's plan", arguments)
		}
		if arguments == "edit" {
			return planEdit, nil
		}
		return planApprove, nil
	}
	return planTask, nil
}
