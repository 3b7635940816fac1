// Package provider manages the model providers of users: it chooses the key for a model, and finds and tests
// models.
package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"deckhand/internal/conversation"
	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
	"deckhand/internal/v0"
)

// Models opens the models that users have chosen in their settings.
type Models struct {
	Settings  *settings.Service
	Connector connect.Connector
	Client    *http.Client // checks every address it dials
	// Silent is true if no model is called, as in a replay.
	Silent bool
	// Limited is true if there is a spending limit per user.
	Limited bool
}

// defaultModel is the model of a user without llm_model: a real one, so that a missing key is
// reported at once and the demo model is never used by accident.
const defaultModel = "anthropic/claude-sonnet-4-20250514"

// Rules returns what the use cases need to know about models. If no model is called, none needs a key.
func (m *Models) Rules() conversation.Models {
	return conversation.Models{Default: defaultModel, HasPrice: m.hasPrice, Blind: m.blind, Other: m.Unusable,
		NeedsKey: func(s *settings.Settings) bool { return !m.Silent && keyMissing(m.Config(*s, "")) }}
}

func keyMissing(c llm.Config) bool { return c.APIKey == "" && c.NeedsKey() }

func (m *Models) hasPrice(model string) bool { return m.Connector.Catalogue.Info(model).Priced }

// blind returns why the model cannot be used for a message with images. For unlisted models it
// is unknown.
func (m *Models) blind(model string) string {
	said, _ := m.Connector.Catalogue.Override(model)
	switch listed := catalogue.New(nil).Info(model).Window > 0; {
	case said.Images != nil && !*said.Images:
		return v0.ImagesDisabled
	case listed && !m.Connector.Catalogue.Info(model).Images:
		return v0.ImagesUnsupported
	}
	return ""
}

// Config returns the configuration of a user's model, "" for the one in the settings. This is the only place that chooses a key:
//
//   - The model in the settings uses llm_api_key and llm_base_url, if they are set, the key is this provider's, and they or
//     the catalogue name a host.
//   - Otherwise the provider's entry has the key and the base URL.
//   - Without an entry, llm_api_key is used if the model is at the same host as the model in the settings.
//
// So a key is never sent to a host that it was not stored for.
func (m *Models) Config(s settings.Settings, model string) llm.Config {
	usual, own := m.usual(s)
	c := usual
	if model != "" {
		c.Model = model
	}
	entry, stored := s.ModelProviders[providerOf(c.Model)]
	switch {
	case c.Model == usual.Model && own && (!stored || m.address(usual) != ""): // without an address, only the entry has one
	case stored:
		c.APIKey, c.BaseURL = entry.Key.Reveal(), entry.BaseURL
	case c.Model != usual.Model && m.address(c) != m.address(usual):
		c.APIKey = ""
	}
	return c
}

// usual returns the configuration of the model in the settings from its own fields; own reports whether a key or base URL is set.
func (m *Models) usual(s settings.Settings) (c llm.Config, own bool) {
	c = llm.Config{Model: defaultModel, Client: m.Client}
	if s.LLMModel != nil && *s.LLMModel != "" {
		c.Model = *s.LLMModel
	}
	if s.LLMBaseURL != nil {
		c.BaseURL = *s.LLMBaseURL
	}
	if c.BaseURL != "" || s.LLMKeyProvider == "" || catalogue.Canonical(s.LLMKeyProvider) == providerOf(c.Model) {
		c.APIKey = s.LLMAPIKey.Reveal()
	}
	return c, c.APIKey != "" || c.BaseURL != ""
}

func providerOf(model string) string {
	provider, _ := catalogue.Split(model)
	return provider
}

// address returns the host that a key would be sent to.
func (m *Models) address(c llm.Config) string { return connect.Address(c, m.Connector.Catalogue) }

// Unusable says why the user's conversations cannot use a model with the stored settings; "" if they can.
func (m *Models) Unusable(s settings.Settings, model string) string {
	c := m.Config(s, model)
	if _, err := m.Connector.Open(c); err != nil {
		return secret.NewMasker(s.SecretValues()...).String(err.Error())
	}
	if keyMissing(c) && !m.Silent {
		return fmt.Sprintf("%s needs an API key of %s. Store one for this provider in the settings, or choose a model of a provider whose key is stored.", c.Model, providerOf(c.Model))
	}
	return ""
}

// Open opens a model for the owner of masker, whose secrets are not in cassettes.
func (m *Models) Open(c llm.Config, masker *secret.Masker) (llm.Model, error) {
	connector := m.Connector
	connector.Redact = masker.String
	return connector.Open(c)
}

// scripted reports whether a model is a script or a recording, which cannot answer arbitrary questions.
func scripted(c llm.Config) bool { return c.Provider() == "scripted" || c.Provider() == "cassette" }

// askOutput is the maximum length of an answer in tokens, including thinking.
const askOutput = 4000

var errNoModel = errors.New("no model is configured")

// Ask sends a question to the user's model, outside of any conversation. The cost of such
// a call is in no log, so it cannot count against a spending limit: Ask makes no call if
// the user has one.
func (m *Models) Ask(ctx context.Context, user, system, question string) (string, error) {
	s, err := m.Settings.Get(ctx, user)
	if err != nil {
		return "", err
	}
	masker, err := m.Settings.Masker(ctx, user)
	if err != nil {
		return "", err
	}
	c := m.Config(s, "")
	if m.Silent || m.Limited || scripted(c) || keyMissing(c) {
		return "", errNoModel
	}
	model, err := m.Open(c, masker)
	if err != nil {
		return "", err
	}
	info := m.Connector.Catalogue.Info(c.Model)
	req := llm.Request{Model: c.Model, System: system, Messages: []llm.Message{{Role: llm.User, Text: question}}, MaxOutput: askOutput}
	if info.MaxOutput > 0 {
		req.MaxOutput = min(req.MaxOutput, info.MaxOutput)
	}
	var out strings.Builder
	for part, err := range model.Stream(ctx, req) {
		if err != nil {
			return "", err
		}
		out.WriteString(part.Text)
	}
	return masker.String(out.String()), nil
}
