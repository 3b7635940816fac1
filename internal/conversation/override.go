package conversation

import (
	"context"
	"slices"
	"strings"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// Override chooses a model, its effort, a budget, plan mode and approvals for one conversation in place of the settings. A conversation that its budget had
// stopped goes on when the new one covers more.
func (s *Service) Override(ctx context.Context, user string, id session.ID, b api.SetOverrides) (session.Overridden, error) {
	if _, err := s.Row(ctx, user, id); err != nil {
		return session.Overridden{}, err
	}
	stored, err := s.stored(ctx, user)
	if err != nil {
		return session.Overridden{}, err
	}
	if effort, sent := b.ReasoningEffort.Get(); sent && !slices.Contains(efforts, effort) {
		return session.Overridden{}, api.Invalid("literal_error", "Must be one of low, medium, high, or null for the provider's default.", "reasoning_effort")
	}
	if mode, sent := b.Approval.Get(); sent && !slices.Contains(approvals, mode) {
		return session.Overridden{}, api.Invalid("literal_error", "Must be one of always, risky, never, or null for the settings.", "approval")
	}
	st, err := s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) {
		o := chosen(st.Overrides, b)
		if b.LLMModel.Set || b.MaxBudgetPerTask.Set {
			if r := s.CheckModel(&stored, Use{Model: o.Model, Key: o.Model != "", Price: true, Limited: o.Limited}); r != nil {
				return nil, r
			}
		}
		out, err := st.Override(o)
		if err != nil || len(out) == 0 || !goesOn(st, o, stored) {
			return out, err
		}
		again, err := st.Resume()
		return append(out, again...), err
	})
	return st.Overrides, err
}

// Chosen has the overrides of a conversation: its own, and those in effect, which include inherited ones.
type Chosen struct{ Own, InForce session.Overridden }

// ChosenFor returns the overrides of a conversation. Overrides of the conversations that delegated it are in effect too.
func ChosenFor(ctx context.Context, sessions *session.Sessions, st session.State) (Chosen, error) {
	c := Chosen{st.Overrides, st.Overrides}
	for st.Created.Parent != "" {
		var err error
		if st, err = sessions.Load(ctx, st.Created.Parent); err != nil {
			return c, err
		}
		c.InForce = c.InForce.Over(st.Overrides)
	}
	return c, nil
}

// efforts are how much a model may be told to reason.
var efforts = []string{"low", "medium", "high"}

// approvals are when the agent may be told to ask.
var approvals = []string{"always", "risky", "never"}

// chosen is what holds after a command.
func chosen(o session.Overridden, b api.SetOverrides) session.Overridden {
	if b.LLMModel.Set {
		o.Model = strings.TrimSpace(b.LLMModel.Value)
	}
	if b.ReasoningEffort.Set {
		o.Effort = b.ReasoningEffort.Value
	}
	if b.MaxBudgetPerTask.Set {
		amount, given := b.MaxBudgetPerTask.Get()
		o.Budget, o.Limited = session.FromDollars(amount), given
	}
	if b.PlanMode.Set {
		o.Plan = b.PlanMode.Value
	}
	if b.Approval.Set {
		o.Approval = b.Approval.Value
	}
	return o
}

// goesOn is true for a turn that ended for lack of money, if there is more now: that is why users raise a limit.
func goesOn(st session.State, o session.Overridden, stored settings.Settings) bool {
	if st.ErrorID != api.CodeBudget || st.Stopped || st.Failed || st.InTurn {
		return false
	}
	switch {
	case o.Limited:
		return o.Budget > st.Committed()
	case stored.MaxBudgetPerTask != nil:
		return session.FromDollars(*stored.MaxBudgetPerTask) > st.Committed()
	}
	return true
}

// resumeMost is how many conversations a new budget resumes at most.
const resumeMost = 500

// ResumeCovered resumes the conversations that the old budget in the settings had stopped and the new one covers. A
// conversation that cannot be resumed is reported to failed, and goes on with its next message.
func (s *Service) ResumeCovered(ctx context.Context, user string, budget api.Opt[float64], failed func(session.ID, error)) {
	q := session.Query{Owner: user, Status: session.Running, Limit: 100}
	for range resumeMost / q.Limit {
		rows, err := s.Index.Rows(ctx, q)
		if err != nil || len(rows) == 0 {
			return
		}
		for _, row := range rows {
			if row.ErrorID != api.CodeBudget || !budget.Null && row.Totals.Cost >= session.FromDollars(budget.Value) {
				continue
			}
			if err := s.Resume(ctx, user, row.ID); err != nil {
				failed(row.ID, err)
			}
		}
		last := rows[len(rows)-1]
		q.Before = &session.Cursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}
