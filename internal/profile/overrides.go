package profile

import (
	"context"

	"deckhand/internal/agent"
	"deckhand/internal/conversation"
	"deckhand/internal/llm"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// override puts what the person chose for a conversation in the place of the
// settings, and returns the way to the model. One that was delegated goes by what was chosen for those above it. plan says that
// the agent is to plan only.
func (b *Builder) override(ctx context.Context, st session.State, s *settings.Settings) (c llm.Config, plan bool, err error) {
	all, err := conversation.ChosenFor(ctx, b.Sessions, st)
	if err != nil {
		return c, false, err
	}
	chosen := all.InForce
	if chosen.Limited {
		dollars := chosen.Budget.Dollars()
		s.MaxBudgetPerTask = &dollars
	}
	s.Ask(chosen.Approval)
	if chosen.Model != "" {
		// The settings may have changed since it was chosen.
		if why := b.Unusable(*s, chosen.Model); why != "" {
			return c, false, &agent.ProfileError{ID: "STATUS$ERROR", Reason: why}
		}
	}
	c = b.Models.Config(*s, chosen.Model)
	c.Effort = chosen.Effort
	return c, chosen.Plan, nil
}

// alternative opens a model for a role beside the conversation's model; nil if there is none, or it cannot be used.
func (b *Builder) alternative(s settings.Settings, model string, main llm.Config, masker *secret.Masker) *agent.Alternative {
	if model == "" || model == main.Model || b.Silent || b.Unsuitable(s, model, conversation.Use{}) != "" {
		return nil
	}
	opened, err := b.Open(b.Models.Config(s, model), masker)
	if err != nil {
		return nil
	}
	return &agent.Alternative{Model: b.recorded(opened, masker), Name: model, Info: b.Connector.Catalogue.Info(model)}
}

// recorded records what a model says, if the operator wants it.
func (b *Builder) recorded(m llm.Model, masker *secret.Masker) llm.Model {
	if b.Record == "" {
		return m
	}
	return b.Record.Record(m, masker.String)
}
