package prompt

import "fmt"

// PlanReady tells the user what to do with a plan.
const PlanReady = "Plan mode. Use /plan approve to carry out the plan, /plan edit to change it, or /plan off to leave plan mode. Send a message to discuss the plan."

// Approved returns the message that tells the agent to carry out its plan. The web page sends the same text.
func Approved(plan, edited string) string {
	if edited == "" || edited == plan {
		return "The plan is approved. Carry it out."
	}
	return "The plan is approved with changes. Carry out this plan:\n\n" + edited
}

// PlanStep is an action of /plan.
type PlanStep int

// Actions of /plan.
const (
	PlanOn PlanStep = iota
	PlanOff
	PlanTask    // plan mode, and a task
	PlanApprove // the plan as it is
	PlanEdit
)

// Plan reads the arguments of /plan. Without any, it turns plan mode on or off. on says that plan mode is on, and ready that there
// is a plan.
func Plan(arguments string, on, ready bool) (PlanStep, error) {
	switch arguments {
	case "":
		if on {
			return PlanOff, nil
		}
		return PlanOn, nil
	case "on":
		return PlanOn, nil
	case "off":
		return PlanOff, nil
	case "approve", "edit":
		if !ready {
			return 0, fmt.Errorf("there is no plan to %s: describe a task with /plan TASK, and wait for the agent's plan", arguments)
		}
		if arguments == "edit" {
			return PlanEdit, nil
		}
		return PlanApprove, nil
	}
	return PlanTask, nil
}
