package profile

import (
	"context"
	"errors"

	"deckhand/api"
	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/probe"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
)

// Test implements account.Config.TestModel: the stored settings, changed by
// what was sent, are tried and forgotten.
func (m *Models) Test(ctx context.Context, user string, in api.TestModel) (api.ModelReport, error) {
	stored, err := m.Settings.Get(ctx, user)
	if errors.Is(err, settings.ErrNotFound) && in.LLMModel.Value != "" {
		stored, err = settings.Defaults(), nil // all that is needed was sent
	}
	if err != nil {
		return api.ModelReport{}, err
	}
	changed, did, err := settings.Merge(&stored, api.SettingsInput{LLMModel: in.LLMModel, LLMAPIKey: in.LLMAPIKey, LLMBaseURL: in.LLMBaseURL})
	if err != nil {
		return api.ModelReport{}, err
	}
	masker, err := m.Settings.Masker(ctx, user)
	if err != nil {
		return api.ModelReport{}, err
	}
	masker = masker.With(changed.SecretValues()...)
	c := m.Config(changed)
	var notes []string
	switch elsewhere := connect.Address(c, m.Connector.Catalogue) != connect.Address(m.Config(stored), m.Connector.Catalogue); {
	case in.LLMAPIKey.Value == "" && !stored.LLMAPIKey.IsZero() && (elsewhere || len(did.Notes) > 0):
		c.APIKey = ""
		notes = []string{"The stored llm_api_key was not used, because it belongs to another host. Send llm_api_key to test this model."}
	case c.APIKey == "" && c.NeedsKey():
		notes = []string{"llm_api_key is missing: none is stored, and none was sent."}
	}
	report := m.try(ctx, c, masker)
	report.Notes = notes
	return report, nil
}

// try makes the calls and writes the report as the wire has it.
func (m *Models) try(ctx context.Context, c llm.Config, masker *secret.Masker) api.ModelReport {
	out := api.ModelReport{Model: c.Model}
	yes, no := true, false
	model, err := m.open(c, masker)
	switch provider := c.Provider(); {
	case err != nil:
		id := agent.ErrorID("")
		out.ErrorID = &id
		out.Checks = []api.ModelCheck{{Name: probe.Reachable, OK: &no, Message: masker.String(err.Error())}}
		return out
	case provider == "scripted" || provider == "cassette": // there is no provider to call
		out.OK = true
		out.Checks = []api.ModelCheck{{Name: probe.Reachable, OK: &yes, Message: "Built-in script, not a language model. It needs no key and no network."}}
		return out
	}
	r := probe.Run(ctx, model, m.Connector.Catalogue.Info(c.Model), probe.Options{Redact: masker.String})
	out.OK = r.OK
	for _, k := range r.Checks {
		out.Checks = append(out.Checks, api.ModelCheck(k))
		if k.Name == probe.Reachable && k.OK != nil && !*k.OK {
			id := agent.ErrorID(r.Class)
			out.ErrorID = &id
		}
	}
	return out
}
