package httpapi

import (
	"context"

	"deckhand/api"
	"deckhand/internal/session"
)

const aboutOverrides = "What is chosen here holds for this conversation in place of the settings, from the next model call on, also in the middle of its work and after every restart. " +
	"A conversation that its budget had stopped goes on when the new one covers more. A model of another provider than the one that the stored key is for is a 400, and so is a budget where the price of the model is not known."

func getOverrides(d *Door, ctx context.Context, c *call, p one, _ none) (api.Overrides, error) {
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.Overrides{}, err
	}
	st, err := d.Sessions.Load(ctx, row.ID)
	return describeOverrides(st.Overrides), err
}

func describeOverrides(o session.Overridden) api.Overrides {
	out := api.Overrides{LLMModel: text(o.Model)}
	if o.Limited {
		out.MaxBudgetPerTask = ptr(o.Budget.Dollars())
	}
	return out
}

func setOverrides(d *Door, ctx context.Context, c *call, p one, b api.SetOverrides) (api.Overrides, error) {
	chosen, err := d.Conversations.Override(ctx, c.who.User, session.ID(p.ID), b)
	return describeOverrides(chosen), err
}
