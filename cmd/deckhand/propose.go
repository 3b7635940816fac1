package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/tool"
	"deckhand/internal/tool/propose"
)

// office is where the tools for pull requests work.
func (b *brain) office() *propose.Office {
	o := &propose.Office{Open: b.forge, Sessions: b.sessions}
	if b.public != "" {
		o.Page = func(id session.ID) string { return b.public + "/conversations/" + string(id) }
	}
	return o
}

// requests are the tools with which the agent of a conversation opens pull
// requests and reads issues. What one opens that was delegated belongs to the
// conversation that the person sees.
func (b *brain) requests(ctx context.Context, st session.State, s settings.Settings) ([]tool.Tool, error) {
	stored := withTokens(s)
	if len(stored) == 0 {
		return nil, nil
	}
	top := st
	for top.Created.Parent != "" {
		var err error
		if top, err = b.sessions.Load(ctx, top.Created.Parent); err != nil {
			return nil, err
		}
	}
	return b.office().Tools(propose.Conversation{ID: top.ID, Provider: st.Created.Provider, Repository: st.Created.Repository, Stored: stored}), nil
}

// proposers implements httpapi.Config.Proposers.
func (b *brain) proposers(ctx context.Context, user string, id session.ID) ([]tool.Tool, error) {
	s, err := b.settings.Get(ctx, user)
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return nil, err
	}
	c := propose.Conversation{ID: id, Stored: withTokens(s)}
	if id != "" {
		st, err := b.sessions.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		c.Provider, c.Repository = st.Created.Provider, st.Created.Repository
	}
	return b.office().Openers(c), nil
}

// withTokens are the providers that a user has a token for, in a fixed order.
func withTokens(s settings.Settings) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.ProviderTokens)), func(name string) bool { return s.ProviderTokens[name].Token.IsZero() })
}
