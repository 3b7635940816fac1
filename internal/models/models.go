package profile

import (
	"context"
	"errors"
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
	// Silent says that no model is asked: what is recorded is all there is.
	Silent bool
	// Limited says that there is a limit on what a user may spend.
	Limited bool
}

// defaultModel is what a user without llm_model gets: a real one, so that a missing key is
// reported at once and the demo model is never used by accident.
const defaultModel = "anthropic/claude-sonnet-4-20250514"

// Rules is what the use cases know of models. Where no model is asked, none needs a key.
func (m *Models) Rules() conversation.Models {
	return conversation.Models{Default: defaultModel, HasPrice: m.hasPrice, Blind: m.blind, Other: m.otherModel,
		NeedsKey: func(model, baseURL string) bool {
			return !m.Silent && (llm.Config{Model: model, BaseURL: baseURL}).NeedsKey()
		}}
}

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

// Config is how the user reaches the model.
func (m *Models) Config(s settings.Settings) llm.Config {
	c := llm.Config{Model: defaultModel, APIKey: s.LLMAPIKey.Reveal(), Client: m.Client}
	if s.LLMModel != nil && *s.LLMModel != "" {
		c.Model = *s.LLMModel
	}
	if s.LLMBaseURL != nil {
		c.BaseURL = *s.LLMBaseURL
	}
	return c
}

// open opens a model for the owner of masker, whose secrets are not in cassettes.
func (m *Models) open(c llm.Config, masker *secret.Masker) (llm.Model, error) {
	connector := m.Connector
	connector.Redact = masker.String
	return connector.Open(c)
}

// askOutput is how long an answer may be, in tokens: thinking counts.
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
	c := m.Config(s)
	switch provider := c.Provider(); {
	case m.Silent, m.Limited, provider == "scripted", provider == "cassette", c.APIKey == "" && c.NeedsKey():
		return "", errNoModel
	}
	model, err := m.open(c, masker)
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
