package agent

import "deckhand/internal/session"

// outOfMoney is how a turn ends that there is no money for: the error's id, and
// what a person can do about it.
func outOfMoney(e *session.BudgetError) (id, reason string) {
	if e.Month != "" {
		return "STATUS$ERROR_USER_BUDGET", e.Error() + ". Ask the operator for a higher limit or wait until then, then send a message to continue."
	}
	return "STATUS$ERROR_BUDGET", e.Error() + ". Raise the budget and send a message to continue."
}
