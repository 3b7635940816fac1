package gitaccess

import (
	"context"
	"errors"
	"maps"
	"slices"

	"deckhand/internal/gitprovider"
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

// ProposeFor opens a pull request in the repository of a conversation for a person.
func (f *Forges) ProposeFor(ctx context.Context, user string, st session.State, p gitprovider.Proposal, reviewers []string) (propose.Opened, error) {
	c := propose.Conversation{ID: st.ID, Provider: st.Created.Provider, Repository: st.Created.Repository}
	return f.proposeDeps().OpenFor(ctx, user, c, p, reviewers)
}

// ProposalError is what is wrong with a proposal that ProposeFor did not take; "" for other errors.
func ProposalError(err error) string {
	if e, ok := errors.AsType[*propose.InvalidError](err); ok {
		return e.Text
	}
	return ""
}

// withTokens are the providers that a user has a token for, in a fixed order.
func withTokens(s settings.Settings) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.ProviderTokens)), func(name string) bool { return s.ProviderTokens[name].Token.IsZero() })
}
