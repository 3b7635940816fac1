package account

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/status"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

func (d *Handlers) getSettings(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.Settings, error) {
	s, err := d.Settings.Get(ctx, c.Who.User)
	if err != nil {
		return api.Settings{}, err
	}
	return d.viewSettings(ctx, c.Who.User, s)
}

// viewSettings is what a user is shown. Where people sign on or the server sends e-mail, the
// identity provider, an administrator or a mailed link says whether an address is verified, and
// the provider which one a user has who entered none.
func (d *Handlers) viewSettings(ctx context.Context, user string, s settings.Settings) (api.Settings, error) {
	view := settings.View(s)
	if !d.VerifiesEmail {
		return view, nil
	}
	e, err := d.Gate.Email(ctx, user)
	linked := err == nil
	if err != nil && !errors.Is(err, access.ErrNotFound) {
		return api.Settings{}, err
	}
	address, confirmed := s.Address(e.Address, e.Verified)
	if address != "" {
		view.Email = &address
	}
	view.EmailVerified = nil // for a user without an identity provider whose address is not confirmed
	if linked || confirmed {
		view.EmailVerified = &confirmed
	}
	return view, nil
}

func (d *Handlers) storeSettings(ctx context.Context, c *rest.Call, _ rest.None, in api.SettingsInput) (api.SettingsStored, error) {
	ignored, err := d.ignoredSettings(ctx, c.Who.User, &in)
	if err != nil {
		return api.SettingsStored{}, err
	}
	notes, err := d.CheckTokens(ctx, c.Who.User, in)
	if err != nil {
		return api.SettingsStored{}, err
	}
	changes, err := d.Settings.Update(ctx, c.Who.User, in, func(old, next *settings.Settings) error {
		if !d.FromLegacyPage(c) {
			return nil
		}
		return d.checkNewBudget(old, next)
	})
	if err != nil {
		return api.SettingsStored{}, err
	}
	if in.MaxBudgetPerTask.Set {
		d.Conversations.ResumeCovered(ctx, c.Who.User, in.MaxBudgetPerTask, func(id session.ID, err error) {
			d.Logger.WarnContext(ctx, "cannot resume a conversation with its new budget", "session", id, "error", err)
		})
	}
	if err := d.Settings.Read(ctx, c.Who.User, func(s *settings.Settings) {
		if r := d.Conversations.CheckModel(s, usecase.Use{Price: true}); r != nil {
			notes = append(notes, "Conversations cannot start with these settings: "+r.Text)
		}
	}); err != nil {
		return api.SettingsStored{}, err
	}
	return api.SettingsStored{Message: "Settings stored", IgnoredFields: ignored, Notes: append(changes.Notes, notes...)}, nil
}

// checkNewBudget refuses a budget for a model without a known price, if the update brings
// the two together. Other updates pass: the legacy front end sends all settings each time.
func (d *Handlers) checkNewBudget(old, next *settings.Settings) error {
	if next.MaxBudgetPerTask == nil {
		return nil
	}
	if old != nil && old.MaxBudgetPerTask != nil && *old.MaxBudgetPerTask == *next.MaxBudgetPerTask && d.Conversations.Models.Name(old) == d.Conversations.Models.Name(next) {
		return nil
	}
	if r := d.Conversations.CheckModel(next, usecase.Use{Price: true}); r != nil {
		return status.OfRefusal(&usecase.Refusal{Kind: r.Kind, Code: r.Code, Text: "Not saved: " + r.Text})
	}
	return nil
}

// ignoredSettings names the fields of in that are not stored, and takes out those that
// are not the user's to set. Values that are stored already are not reported: clients
// send back what they were given.
func (d *Handlers) ignoredSettings(ctx context.Context, user string, in *api.SettingsInput) ([]string, error) {
	out := slices.Clone(in.Unknown())
	if len(in.ReadOnly()) == 0 && (!d.VerifiesEmail || !in.EmailVerified.Set) {
		return out, nil
	}
	s, err := d.Settings.Get(ctx, user)
	if errors.Is(err, settings.ErrNotFound) {
		s, err = settings.Defaults(), nil
	}
	if err != nil {
		return nil, err
	}
	view, err := d.viewSettings(ctx, user, s)
	if err != nil {
		return nil, err
	}
	if d.VerifiesEmail && in.EmailVerified.Set {
		if in.EmailVerified.Null != (view.EmailVerified == nil) || in.EmailVerified.Value != rest.Deref(view.EmailVerified) {
			out = append(out, "email_verified")
		}
		in.EmailVerified = api.Opt[bool]{}
	}
	for name, stored := range map[string]any{"llm_api_key_set": view.LLMAPIKeySet, "search_api_key_set": view.SearchAPIKeySet,
		"sandbox_api_key_set": view.SandboxAPIKeySet, "provider_tokens_set": view.ProviderTokensSet} {
		if sent, ok := in.ReadOnly()[name]; ok && !sameJSON(sent, stored) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// sameJSON reports whether raw means what v is encoded to.
func sameJSON(raw json.RawMessage, v any) bool {
	text, err := json.Marshal(v)
	var a, b any
	return err == nil && json.Unmarshal(raw, &a) == nil && json.Unmarshal(text, &b) == nil && reflect.DeepEqual(a, b)
}

// frontEndModel is the default of legacy front ends, which show a model only if it is
// listed.
const frontEndModel = "openhands/claude-sonnet-4-20250514"

func (d *Handlers) listModels(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) ([]string, error) {
	names := slices.Sorted(slices.Values(d.Models()))
	if i, listed := slices.BinarySearch(names, frontEndModel); !listed {
		names = slices.Insert(names, i, frontEndModel)
	}
	return names, nil
}

func (*Handlers) listAgents(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) ([]string, error) {
	return slices.Sorted(slices.Values(settings.Agents)), nil
}

func (*Handlers) listAnalyzers(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) ([]string, error) {
	return slices.Sorted(slices.Values(settings.SecurityAnalyzers)), nil
}

func (*Handlers) getConfig(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (api.OptionsConfig, error) {
	return api.OptionsConfig{AppMode: "oss", FeatureFlags: map[string]bool{"ENABLE_BILLING": false, "HIDE_LLM_SETTINGS": false}}, nil
}
