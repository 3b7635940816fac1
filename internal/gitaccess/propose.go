package gitaccess

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

// proposeDeps are what the tools for pull requests need.
func (f *Forges) proposeDeps() *propose.Deps {
	o := &propose.Deps{Open: f.Open, Sessions: f.Sessions}
	if f.Public() != "" {
		o.Page = f.Page
	}
	return o
}

// Requests are the tools with which the agent of a conversation opens pull
// requests and reads issues. What one opens that was delegated belongs to the
// conversation that the person sees.
func (f *Forges) Requests(ctx context.Context, st session.State, s settings.Settings) ([]tool.Tool, error) {
	stored := withTokens(s)
	if len(stored) == 0 {
		return nil, nil
	}
	top := st
	for top.Created.Parent != "" {
		var err error
		if top, err = f.Sessions.Load(ctx, top.Created.Parent); err != nil {
			return nil, err
		}
	}
	return f.proposeDeps().Tools(propose.Conversation{ID: top.ID, Provider: st.Created.Provider, Repository: st.Created.Repository, Stored: stored}), nil
}

// Proposers implements mcp.Config.Proposers.
func (f *Forges) Proposers(ctx context.Context, user string, id session.ID) ([]tool.Tool, error) {
	s, err := f.Settings.Get(ctx, user)
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return nil, err
	}
	c := propose.Conversation{ID: id, Stored: withTokens(s)}
	if id != "" {
		st, err := f.Sessions.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		c.Provider, c.Repository = st.Created.Provider, st.Created.Repository
	}
	return f.proposeDeps().Openers(c), nil
}

// withTokens are the providers that a user has a token for, in a fixed order.
func withTokens(s settings.Settings) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.ProviderTokens)), func(name string) bool { return s.ProviderTokens[name].Token.IsZero() })
}
