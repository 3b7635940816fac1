package provider

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/settings"
)

// known is a provider that is offered by name.
type known struct {
	id, name string
	local    bool
	// home is the default base URL of its adapter.
	home string
}

// providers are offered in this order. Any other provider of the catalogue, and any server with a compatible API, can be
// added under a name of its own.
var providers = []known{
	{id: "anthropic", name: "Anthropic", home: "https://api.anthropic.com"},
	{id: "openai", name: "OpenAI", home: "https://api.openai.com/v1"},
	{id: "gemini", name: "Google Gemini", home: "https://generativelanguage.googleapis.com"},
	{id: "openrouter", name: "OpenRouter"},
	{id: "mistral", name: "Mistral"},
	{id: "groq", name: "Groq"},
	{id: "azure", name: "Azure OpenAI"},
	{id: "bedrock", name: "Amazon Bedrock"},
	{id: "vertexai", name: "Google Vertex AI"},
	{id: "ollama", name: "Ollama", local: true},
	{id: "lmstudio", name: "LM Studio", local: true},
	{id: "vllm", name: "vLLM", local: true},
}

func describe(id string) known {
	for _, k := range providers {
		if k.id == id {
			return k
		}
	}
	return known{id: id, name: id}
}

// home returns the default base URL of a provider, "" if the user's entry needs one.
func (m *Models) home(k known) string {
	if connect.NeedsBaseURL(k.id) != "" {
		return ""
	}
	p, _ := m.Connector.Catalogue.Provider(k.id)
	if p.Address != "" {
		return p.Address
	}
	return k.home
}

// stored returns the user's settings, or the defaults.
func (m *Models) stored(ctx context.Context, user string) (settings.Settings, error) {
	s, err := m.Settings.Get(ctx, user)
	if errors.Is(err, settings.ErrNotFound) {
		return settings.Defaults(), nil
	}
	return s, err
}

// usable reports whether models of a provider can be used with the stored settings: with its entry, or because they are at
// the host of the model in the settings.
func (m *Models) usable(s settings.Settings, id string) bool {
	_, stored := s.ModelProviders[id]
	usual := m.Config(s, "")
	at := m.address(usual)
	if providerOf(usual.Model) != id && !stored && (usual.APIKey == "" || at == "" || m.address(m.Config(s, id+"/x")) != at) {
		return false
	}
	return m.Unusable(s, id+"/x") == ""
}

// Providers lists the providers with the user's entries, without keys.
func (m *Models) Providers(ctx context.Context, user string) (api.ModelProviders, error) {
	s, err := m.stored(ctx, user)
	if err != nil {
		return api.ModelProviders{}, err
	}
	usual, own := m.usual(s)
	main := providerOf(usual.Model)
	list := slices.Clone(providers)
	for _, id := range slices.Sorted(maps.Keys(s.ModelProviders)) {
		if !slices.Contains(providers, describe(id)) {
			list = append(list, describe(id))
		}
	}
	out := api.ModelProviders{ModelRoles: roles(s), Default: api.DefaultModel{Model: usual.Model, Provider: main, OwnKey: own, Usable: m.Silent || m.Unusable(s, usual.Model) == ""}}
	for _, k := range list {
		entry, stored := s.ModelProviders[k.id]
		out.Providers = append(out.Providers, api.ModelProvider{ID: k.id, Name: k.name, Configured: stored, APIKeySet: !entry.Key.IsZero(),
			BaseURL: orNull(entry.BaseURL), DefaultBaseURL: orNull(m.home(k)), Local: k.local, Lists: m.lists(k, entry), Default: k.id == main,
			Usable: m.usable(s, k.id), Note: orNull(conversation.Sentence(strings.TrimSuffix(connect.NeedsBaseURL(k.id), ".")))})
	}
	return out, nil
}

// lists reports whether the list of models is read from the provider's server.
func (m *Models) lists(k known, entry settings.ModelProvider) bool {
	p, listed := m.Connector.Catalogue.Provider(k.id)
	return k.local || entry.BaseURL != "" && (!listed || p.API == catalogue.Chat) && connect.NeedsBaseURL(k.id) == "" && entry.BaseURL != m.home(k)
}

// SetProvider implements account.Providers: in is nil to remove the entry.
func (m *Models) SetProvider(ctx context.Context, user, id string, in *api.SetModelProvider) (notes []string, err error) {
	id = catalogue.Canonical(id)
	err = m.Settings.Change(ctx, user, func(s *settings.Settings) (err error) {
		if in == nil {
			delete(s.ModelProviders, id)
			return nil
		}
		key, err := checkedKey(id, in.APIKey, "api_key")
		if err != nil {
			return err
		}
		entry := *in
		entry.APIKey = key
		notes, err = s.SetModelProvider(id, m.home(describe(id)), entry)
		return err
	})
	return notes, err
}

// checkedKey checks the key of a provider and returns it as it is stored. The error is a *api.ValidationError.
func checkedKey(id string, key api.Opt[string], field string) (api.Opt[string], error) {
	text, sent := key.Get()
	if !sent || text == "" || text == api.Masked {
		return key, nil
	}
	text, err := connect.CheckKey(id, text)
	if err != nil {
		return key, api.Invalid("value_error", err.Error(), field)
	}
	return api.Some(text), nil
}

// SetRoles implements account.Providers.
func (m *Models) SetRoles(ctx context.Context, user string, in api.SetModelRoles) (notes []string, err error) {
	err = m.Settings.Change(ctx, user, func(s *settings.Settings) error {
		err := s.SetModelRoles(in)
		notes = nil
		for _, model := range []string{s.Small, s.Fallback} {
			if model == "" || err != nil {
				continue
			}
			if why := m.Unsuitable(*s, model, conversation.Use{}); why != "" {
				notes = append(notes, "Not used until this is fixed: "+why)
			}
		}
		return err
	})
	return notes, err
}

// Unsuitable says why a model cannot be the small or the fallback model: it is not usable, or the user has a spending
// limit and its price is unknown.
func (m *Models) Unsuitable(s settings.Settings, model string, u conversation.Use) string {
	if scripted(m.Config(s, model)) {
		return model + " is a script and answers no other questions."
	}
	u.Model, u.Key, u.Price, u.UserLimit = model, true, true, m.Limited
	if r := m.Rules().Check(&s, u); r != nil {
		return r.Text
	}
	return ""
}

func roles(s settings.Settings) api.ModelRoles {
	return api.ModelRoles{Small: orNull(s.Small), Fallback: orNull(s.Fallback), Favourites: append([]string{}, s.Favourites...)}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
