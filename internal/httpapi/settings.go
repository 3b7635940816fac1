package httpapi

import (
	"context"
	"slices"

	"deckhand/api"
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
	changes, err := d.Settings.Update(ctx, c.who.User, in)
	if err != nil {
		return api.SettingsStored{}, err
	}
	return api.SettingsStored{Message: "Settings stored", IgnoredFields: in.Unknown(), Notes: changes.Notes}, nil
}

func listModels(d *Door, _ context.Context, _ *call, _ none, _ none) ([]string, error) {
	return d.Models.Names, nil
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
