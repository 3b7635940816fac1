package httpapi

import (
	"context"
	"slices"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

func getSettings(d *Door, ctx context.Context, c *call, _ none, _ none) (api.Settings, error) {
	s, err := d.Settings.Get(ctx, c.who.User)
	if err != nil {
		return api.Settings{}, err
	}
	return settings.View(s), nil
}

func storeSettings(d *Door, ctx context.Context, c *call, _ none, in api.SettingsInput) (api.SettingsStored, error) {
	notes, err := d.checkTokens(ctx, c.who.User, in)
	if err != nil {
		return api.SettingsStored{}, err
	}
	changes, err := d.Settings.Update(ctx, c.who.User, in)
	if err != nil {
		return api.SettingsStored{}, err
	}
	if in.MaxBudgetPerTask.Set {
		d.goOn(ctx, c.who.User, in.MaxBudgetPerTask)
	}
	return api.SettingsStored{Message: "Settings stored", IgnoredFields: in.Unknown(), Notes: append(changes.Notes, notes...)}, nil
}

func listModels(d *Door, _ context.Context, _ *call, _ none, _ none) ([]string, error) {
	return slices.Sorted(slices.Values(d.Models.Names())), nil
}

func listAgents(_ *Door, _ context.Context, _ *call, _ none, _ none) ([]string, error) {
	return slices.Sorted(slices.Values(settings.Agents)), nil
}

func listAnalyzers(_ *Door, _ context.Context, _ *call, _ none, _ none) ([]string, error) {
	return slices.Sorted(slices.Values(settings.SecurityAnalyzers)), nil
}

func getConfig(_ *Door, _ context.Context, _ *call, _ none, _ none) (api.OptionsConfig, error) {
	return api.OptionsConfig{AppMode: "oss", FeatureFlags: map[string]bool{"ENABLE_BILLING": false, "HIDE_LLM_SETTINGS": false}}, nil
}

// goOnMost is how many conversations a new budget sets going again at most.
const goOnMost = 500

// goOn takes up the conversations again that the old budget had stopped and the
// new one covers. It is a courtesy: what fails here goes on with the next message.
func (d *Door) goOn(ctx context.Context, user string, budget api.Opt[float64]) {
	q := session.Query{Owner: user, Status: session.Running, Limit: 100}
	for range goOnMost / q.Limit {
		rows, err := d.Index.Rows(ctx, q)
		if err != nil || len(rows) == 0 {
			return
		}
		for _, row := range rows {
			if row.ErrorID != api.CodeBudget || !budget.Null && row.Totals.Cost.Dollars() >= budget.Value {
				continue
			}
			if _, err := d.Sessions.Update(ctx, row.ID, func(s session.State) ([]session.Payload, error) { return s.Resume() }); err != nil {
				d.Logger.Warn("a conversation did not go on with its new budget", "session", row.ID, "error", err)
			}
		}
		last := rows[len(rows)-1]
		q.Before = &session.Cursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}
