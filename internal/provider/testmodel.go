package provider

import (
	"context"
	"errors"
	"strings"

	"deckhand/api"
	"deckhand/internal/agent"
	"deckhand/internal/conversation"
	"deckhand/internal/llm"
	"deckhand/internal/llm/probe"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
)

// Test implements account.Config.TestModel: it tests the model with the stored settings and the changes in the request,
// and stores nothing.
func (m *Models) Test(ctx context.Context, user string, in api.TestModel) (api.ModelReport, error) {
	stored, err := m.Settings.Get(ctx, user)
	if errors.Is(err, settings.ErrNotFound) && in.LLMModel.Value != "" {
		stored, err = settings.Defaults(), nil // the request has all that is needed
	}
	if err != nil {
		return api.ModelReport{}, err
	}
	model := in.LLMModel.Value
	if model == "" {
		model = m.Config(stored, "").Model
	}
	if in.LLMAPIKey, err = checkedKey(providerOf(model), in.LLMAPIKey, "llm_api_key"); err != nil {
		return api.ModelReport{}, err
	}
	// The rules for what may be sent are those of the settings; nothing of the result is stored.
	changed, _, err := settings.Merge(nil, api.SettingsInput{LLMModel: in.LLMModel, LLMAPIKey: unmasked(in.LLMAPIKey), LLMBaseURL: in.LLMBaseURL})
	if err != nil {
		return api.ModelReport{}, err
	}
	masker, err := m.Settings.Masker(ctx, user)
	if err != nil {
		return api.ModelReport{}, err
	}
	masker = masker.With(changed.SecretValues()...)
	now := m.Config(stored, in.LLMModel.Value)
	c := now
	if in.LLMBaseURL.Set && !in.LLMBaseURL.Null {
		c.BaseURL = in.LLMBaseURL.Value
	}
	held := !stored.LLMAPIKey.IsZero() || now.APIKey != ""
	if sent := changed.LLMAPIKey.Reveal(); sent != "" {
		c.APIKey = sent
	} else if m.address(c) != m.address(now) {
		c.APIKey = ""
	}
	var notes []string
	switch {
	case c.APIKey != "" || scripted(c):
	case held:
		notes = []string{"The stored API key was not used, because it belongs to another host. Enter the API key again to test this model."}
	case c.NeedsKey():
		notes = []string{"The API key is missing: none is stored, and none was entered."}
	}
	if name, ok := strings.CutSuffix(c.Model, "/"); ok && !strings.Contains(name, "/") {
		listed, err := m.discover(ctx, llm.Config{Model: c.Model + "x", APIKey: c.APIKey, BaseURL: c.BaseURL, Client: c.Client})
		if err == nil && len(listed) == 0 {
			err = errors.New("the server lists no models; load one, or enter its name")
		}
		if err != nil {
			no, id := false, agent.ErrorID(llm.ClassNetwork)
			return api.ModelReport{Model: name, Notes: notes, ErrorID: &id,
				Checks: []api.ModelCheck{{Name: probe.Reachable, OK: &no, Message: conversation.Sentence(masker.String(err.Error()))}}}, nil
		}
		c.Model += listed[0]
	}
	report := m.try(ctx, c, masker)
	report.Notes = notes
	return report, nil
}

// unmasked replaces the mask with the stored key.
func unmasked(key api.Opt[string]) api.Opt[string] {
	if key.Value == api.Masked {
		return api.Opt[string]{}
	}
	return key
}

// try makes the calls and returns the report in the form of the API.
func (m *Models) try(ctx context.Context, c llm.Config, masker *secret.Masker) api.ModelReport {
	out := api.ModelReport{Model: c.Model}
	yes, no := true, false
	model, err := m.Open(c, masker)
	switch {
	case err != nil:
		id := agent.ErrorID("")
		out.ErrorID = &id
		out.Checks = []api.ModelCheck{{Name: probe.Reachable, OK: &no, Message: masker.String(err.Error())}}
		return out
	case scripted(c): // there is no provider to call
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
