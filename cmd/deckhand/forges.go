package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/forge"
	"deckhand/internal/httpapi"
	"deckhand/internal/llm"
	"deckhand/internal/settings"
	"deckhand/internal/solvable"
)

// wireForges gives the door the git providers and the user's model.
func (s *server) wireForges(c *httpapi.Config, client *http.Client) {
	s.brain.rater = solvable.New(s.brain.ask, s.logger)
	c.Rater, c.Ask = s.brain.rater, s.brain.ask
	c.Forge = func(ctx context.Context, provider string, t settings.ProviderToken) (gitprovider.Provider, error) {
		return open(ctx, client, provider, t)
	}
}

func open(ctx context.Context, client *http.Client, provider string, t settings.ProviderToken) (gitprovider.Provider, error) {
	return forge.Open(ctx, provider, call.Options{Client: client, Token: t.Token.Reveal(), Host: t.Host, Name: provider})
}

// forge opens a provider with what the user stored for it. Without a token it
// is asked as nobody.
func (b *brain) forge(ctx context.Context, user, provider string) (gitprovider.Provider, error) {
	var t settings.ProviderToken
	err := b.settings.Read(ctx, user, func(s *settings.Settings) { t = s.ProviderTokens[provider] })
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return nil, err
	}
	return open(ctx, b.client, provider, t)
}

// askOutput is how long an answer may be, in tokens: thinking counts.
const askOutput = 4000

var errNoModel = errors.New("no model is configured")

// ask puts a question to the user's own model, outside of any conversation. Such
// a call is in no log, so nobody could keep a limit on what the user may spend:
// where there is one, nobody is asked.
func (b *brain) ask(ctx context.Context, user, system, question string) (string, error) {
	s, err := b.settings.Get(ctx, user)
	if err != nil {
		return "", err
	}
	masker, err := b.settings.Masker(ctx, user)
	if err != nil {
		return "", err
	}
	c := b.config(s)
	switch provider := c.Provider(); {
	case b.silent, b.limited, provider == "scripted", provider == "cassette", c.APIKey == "" && c.NeedsKey():
		return "", errNoModel
	}
	m, err := b.open(c, masker)
	if err != nil {
		return "", err
	}
	info := b.models.Catalogue.Info(c.Model)
	req := llm.Request{Model: c.Model, System: system, Messages: []llm.Message{{Role: llm.User, Text: question}}, MaxOutput: askOutput}
	if info.MaxOutput > 0 {
		req.MaxOutput = min(req.MaxOutput, info.MaxOutput)
	}
	var out strings.Builder
	for part, err := range m.Stream(ctx, req) {
		if err != nil {
			return "", err
		}
		out.WriteString(part.Text)
	}
	return masker.String(out.String()), nil
}
