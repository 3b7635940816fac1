package httpapi

import (
	"context"
	"math"
	"net/http"
	"strings"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/settings"
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
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.Overrides{}, err
	}
	stored, err := d.Settings.Get(ctx, c.who.User)
	if err != nil {
		return api.Overrides{}, settingsMissing(err)
	}
	st, err := d.change(ctx, c, string(row.ID), func(s session.State) ([]session.Payload, error) {
		o := chosen(s.Overrides, b)
		if err := d.checkOverrides(stored, o); err != nil {
			return nil, err
		}
		out, err := s.Override(o)
		if err != nil || len(out) == 0 || !goesOn(s, o, stored) {
			return out, err
		}
		again, err := s.Resume()
		return append(out, again...), err
	})
	return describeOverrides(st.Overrides), err
}

// mostMoney is more than anybody has, in US dollars, and fits into session.Money.
const mostMoney = 9e9

// chosen is what holds after a request.
func chosen(o session.Overridden, b api.SetOverrides) session.Overridden {
	if b.LLMModel.Set {
		o.Model = strings.TrimSpace(b.LLMModel.Value)
	}
	if b.MaxBudgetPerTask.Set {
		amount, given := b.MaxBudgetPerTask.Get()
		o.Budget, o.Limited = session.Money(math.Round(min(amount, mostMoney)*1e9)), given
	}
	return o
}

// checkOverrides says what keeps a conversation from going on like this.
func (d *Door) checkOverrides(s settings.Settings, o session.Overridden) error {
	model := d.Models.Default
	if s.LLMModel != nil && *s.LLMModel != "" {
		model = *s.LLMModel
	}
	if o.Model != "" {
		model = o.Model
	}
	if o.Model != "" && d.Models.Other != nil {
		if why := d.Models.Other(s, o.Model); why != "" {
			return fail(http.StatusBadRequest, api.CodeModelUnavailable, why)
		}
	}
	if limited := o.Limited || s.MaxBudgetPerTask != nil || d.Usage.Limit > 0; limited && !d.Models.HasPrice(model) {
		return fail(http.StatusBadRequest, api.CodePriceUnknown,
			"There is a limit on what the conversation may cost, but the price of "+model+" is not known, so the limit could not be kept. Choose another model, or have it given a price under prices in the server's config file (0 is a price).")
	}
	return nil
}

// goesOn is true for a turn that ended for lack of money, if there is more now:
// that is why people raise a limit.
func goesOn(s session.State, o session.Overridden, stored settings.Settings) bool {
	if s.ErrorID != api.CodeBudget || s.Stopped || s.Failed || s.InTurn {
		return false
	}
	switch {
	case o.Limited:
		return o.Budget > s.Committed()
	case stored.MaxBudgetPerTask != nil:
		return *stored.MaxBudgetPerTask > s.Committed().Dollars()
	}
	return true
}
