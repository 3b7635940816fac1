package conversations

import (
	"context"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const aboutOverrides = "Overrides replace the settings for this conversation. They apply from the next model call, also during a turn, and survive restarts. " +
	"A conversation that was stopped by its budget continues when the new budget is higher. A model of a provider without a stored key is a 400, and so is a budget for a model without a known price."

func (d *Handlers) getOverrides(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Overrides, error) {
	st, err := d.load(ctx, c, p.ID)
	return describeOverrides(st.Overrides), err
}

func describeOverrides(o session.Overridden) api.Overrides {
	out := api.Overrides{LLMModel: rest.OrNull(o.Model), ReasoningEffort: rest.OrNull(o.Effort), PlanMode: o.Plan, Approval: rest.OrNull(o.Approval)}
	if o.Limited {
		out.MaxBudgetPerTask = new(o.Budget.Dollars())
	}
	return out
}

func (d *Handlers) setOverrides(ctx context.Context, c *rest.Call, p rest.InConversation, b api.SetOverrides) (api.Overrides, error) {
	chosen, err := d.Service.Override(ctx, c.Who.User, session.ID(p.ID), b)
	return describeOverrides(chosen), err
}
