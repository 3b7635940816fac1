package agent

import (
	"context"

	"deckhand/internal/session"
)

// ruleStuck is the rule name of the reminder for a model that repeats itself.
const ruleStuck = "stuck"

// unstick reminds the model the first time and stops the turn the second time.
func (l *Loop) unstick(ctx context.Context, w *worker, t *transcript, why string) (session.State, error) {
	if t.repeats.Nudged {
		return l.endTurn(ctx, w, t, "STATUS$ERROR_STUCK", "AgentStuckInLoopError: Agent got stuck in a loop: "+why+". Send a message to continue.")
	}
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		if s.Claim != w.claim {
			return nil, session.ErrNotOwner
		}
		return []session.Payload{session.Nudged{Rule: ruleStuck, Text: "You are going round in circles: " + why +
			". Doing it again will not help. Think about what you assumed and try something else; if you cannot go on, say what is in the way and ask the user."}}, nil
	})
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}
